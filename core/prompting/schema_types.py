"""The class tree of schema.org, along which a prompt for a type is looked up.

The classes are facts of schema.org (version and licence stand in `schema-org-types.json`).
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path

BASE = "Thing"

# NLWeb's names for things schema.org has no class for, or another one: they load, and a listing finds its
# prompts.
EXTRA_PARENTS: Mapping[str, tuple[str, ...]] = {
    "RealEstate": (BASE,),
    "Statistics": ("Dataset",),
    "RealEstateListing": ("RealEstate", "WebPage"),
}

DATA = Path(__file__).parent / "schema-org-types.json"


@cache
def parents() -> Mapping[str, tuple[str, ...]]:
    """Every known class with its direct parents."""
    read = json.loads(DATA.read_text(encoding="utf-8"))["types"]
    return {name: tuple(above) for name, above in read.items()} | dict(EXTRA_PARENTS)


@cache
def version() -> str:
    """The version of schema.org that the classes are of."""
    return str(json.loads(DATA.read_text(encoding="utf-8"))["version"])


def local_name(name: str) -> str:
    """`Recipe` of `http://schema.org/Recipe`, `schema:Recipe`, `{namespace}Recipe`; `Item` is the base."""
    for mark in ("}", "/", "#", ":"):
        name = name.rpartition(mark)[2]
    name = name.strip()
    return BASE if name in ("Item", "") else name


def known(name: str) -> bool:
    """Whether `name` (a local name) is a class of schema.org or one of NLWeb's own."""
    return name in parents()


@cache
def _by_fold() -> Mapping[str, str]:
    return {name.casefold(): name for name in parents()}


def spelled(name: str) -> str:
    """The class as schema.org spells it, whatever the case; a name that is none as it is."""
    return _by_fold().get(name.casefold(), name)


@lru_cache(maxsize=4096)
def ancestors(name: str) -> tuple[str, ...]:
    """All classes above `name`, nearest first (breadth first, parents in the vocabulary's order), the base
    last and always, without `name` itself."""
    if name == BASE:
        return ()
    tree = parents()
    found: dict[str, None] = {}
    level = [name]
    while level:
        level = [above for one in level for above in tree.get(one, ())]
        level = [above for above in dict.fromkeys(level) if above not in found and above not in (name, BASE)]
        found |= dict.fromkeys(level)
    return (*found, BASE)


def kinds(types: Iterable[str]) -> list[str]:
    """These classes and all above them but the base, sorted: what an item of these types is."""
    found = {one for name in map(local_name, types) for one in (name, *ancestors(name))}
    return sorted(found - {BASE})


@lru_cache(maxsize=1024)
def guess(name: str) -> str:
    """` (did you mean ...?)` for a name that is no class, or nothing."""
    return did_you_mean(name, parents())


def did_you_mean(name: str, known_names: Mapping[str, object] | list[str] | tuple[str, ...]) -> str:
    """` (did you mean ...?)` with the nearest of `known_names`, ignoring case; empty when none is near."""
    by_fold = {one.casefold(): one for one in known_names}
    near = difflib.get_close_matches(name.casefold(), list(by_fold), n=1, cutoff=0.6)
    return f" (did you mean `{by_fold[near[0]]}`?)" if near else ""
