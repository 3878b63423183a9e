"""All prompts of an installation: read from files in layers, found by site and along the class tree."""

from __future__ import annotations

import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import get_args

from core.errors import ConfigError
from core.prompting import schema_types
from core.prompting.parse import ParsedFile, Problem, Prompt, SiteEntry, UnknownUse, parse_file
from core.prompting.refs import STEP_PREFIX
from core.prompting.schema_types import BASE, did_you_mean
from core.signals import Kind, Signal

__all__ = ["Problem", "Prompt", "PromptLibrary", "SiteInfo", "check"]

Layer = Sequence[ParsedFile]
CACHED_LOOKUPS = 32_768


@dataclass(frozen=True, slots=True)
class SiteInfo:
    """What the prompt files say of a site; a site they don't mention has the defaults."""

    name: str
    description: str = ""
    types: tuple[str, ...] = (BASE,)
    extends: str = ""
    files: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()  # examples of what can be asked


class PromptLibrary:
    """Immutable: a change of files makes a new library, running questions keep theirs.

    `layers` are lists of files, the most basic first. A definition in a later layer goes before an equal one
    (same site, type and ref) in an earlier layer.
    """

    def __init__(self, layers: Sequence[Layer], problems: Sequence[Problem] = ()) -> None:
        usable = [[file for file in layer if file.usable] for layer in layers]
        self.sites: Mapping[str, SiteInfo] = merged_sites(usable)
        self.index = index_of(usable)
        self._signals = {
            (one.site, one.item_type, one.signal.kind): one.signal
            for layer in usable
            for file in layer
            for one in file.signals
        }
        self.types = frozenset((*schema_types.parents(), *(item_type for _, item_type, _ in self.index)))
        said = [problem for layer in layers for file in layer for problem in file.problems]
        self.problems: tuple[Problem, ...] = (
            *problems,
            *said,
            *across_files(usable),
            *wrong_extends(usable, self.sites),
        )
        self._find = lru_cache(maxsize=CACHED_LOOKUPS)(self._look_up)
        self._find_signals = lru_cache(maxsize=CACHED_LOOKUPS)(self._look_up_signals)
        self._steps = lru_cache(maxsize=CACHED_LOOKUPS)(self._order_steps)
        self._step_refs = step_refs(self.index)
        if self._step_refs:
            self.problems += tuple(step_problems(self))

    @classmethod
    def load(
        cls,
        site_types: Path | Sequence[Path],
        prompt_dirs: Sequence[Path],
        *,
        files: Sequence[Path] = (),
        own_variables: Collection[str] = (),
    ) -> PromptLibrary:
        """Read the base file (or several, each layered over the one before), then every `*.xml` of each
        folder, then `files` over all of them. `own_variables` are those that steps in Python set.

        Raises ConfigError with a line `file:line:col: what` for each error of a base file and of `files`. A
        site's file with an error is left out whole and reported in `problems`; the others hold.
        """
        base, folders, problems = read_layers(site_types, prompt_dirs)
        extra = [[parse_file(path) for path in files]]
        layers = settled([*([file] for file in base), *folders, *extra], own_variables)
        named = [*(file for (file,) in layers[: len(base)]), *layers[-1]]
        wrong = [one for file in named for one in file.problems if one.severity == "error"]
        if wrong:
            raise ConfigError("\n".join(str(problem) for problem in wrong))
        return cls(layers, problems)

    def find(self, ref: str, site: str = "", item_type: str = "") -> Prompt | None:
        """The prompt that holds for `ref`, or None where there is none or it is switched off.

        Looked for at the site, then where the site `extends`, then without a site; each time at `item_type`
        (the site's first type where none is given), at its ancestors nearest first, and at the base.
        """
        # callers' words are brought down to what there is, so that nobody can fill the cache with others
        if site not in self.sites:
            site = ""
        if item_type and item_type not in self.types:
            item_type = schema_types.local_name(item_type)
            item_type = item_type if item_type in self.types else BASE
        return self._find(ref, site, item_type)

    def _look_up(self, ref: str, site: str, item_type: str) -> Prompt | None:
        winner = next(self._candidates(ref, site, item_type), None)
        return winner if winner is not None and winner.enabled else None

    def signals(self, site: str, types: Sequence[str]) -> tuple[Signal, ...]:
        """What counts beside relevance for a site's items of these types: of each kind one, looked for as
        prompts are, at each type and its ancestors."""
        if not self._signals:
            return ()
        return self._find_signals(site if site in self.sites else "", tuple(types) or (BASE,))

    def has_signals(self, sites: Iterable[str]) -> bool:
        """Whether anything but relevance counts at one of these sites."""
        places = {place for place, _, _ in self._signals}
        return bool(places) and (
            None in places or any(places.intersection(self.lineage(site)) for site in sites)
        )

    def _look_up_signals(self, site: str, types: tuple[str, ...]) -> tuple[Signal, ...]:
        found: dict[Kind, Signal] = {}
        for place in (*self.lineage(site), None):
            for kind in get_args(Kind):
                for one in (one for name in types for one in (name, *schema_types.ancestors(name))):
                    if kind not in found and (place, one, kind) in self._signals:
                        found[kind] = self._signals[place, one, kind]
        return tuple(signal for signal in found.values() if signal.weight)

    def chain(self, ref: str, site: str = "", item_type: str = "") -> list[Prompt]:
        """Every prompt that could hold, the winner first (also one that is switched off)."""
        return list(self._candidates(ref, site, item_type))

    def _candidates(self, ref: str, site: str, item_type: str) -> Iterator[Prompt]:
        kind = schema_types.local_name(item_type) if item_type else self.site(site).types[0]
        types = (kind, *schema_types.ancestors(kind))
        for place in (*self.lineage(site), None):
            for one in types:
                yield from self.index.get((place, one, ref), ())

    def steps(self, site: str = "", item_type: str = "") -> tuple[Prompt, ...]:
        """The steps of its own that a site has for a type, each after those whose variable it uses. Steps
        that wait for each other in a circle are left out (and named in `problems`)."""
        if not self._step_refs:
            return ()
        return self._steps(site if site in self.sites else "", item_type)

    def _order_steps(self, site: str, item_type: str) -> tuple[Prompt, ...]:
        waiting = self.steps_named(site, item_type)
        ordered: list[Prompt] = []
        while waiting:
            free = [step for step in waiting if not any(goes_before(one, step) for one in waiting)]
            if not free:
                break
            ordered += free
            waiting = [step for step in waiting if step not in free]
        return tuple(ordered)

    def steps_named(self, site: str, item_type: str) -> list[Prompt]:
        """The steps that hold for a site and type, by name; of several that set one variable the first."""
        by_variable: dict[str, Prompt] = {}
        for ref in self.refs_of_steps(site):
            step = self.find(ref, site, item_type)
            if step is not None:
                by_variable.setdefault(step.sets, step)
        return list(by_variable.values())

    def refs_of_steps(self, site: str) -> list[str]:
        """The refs of all own steps that a site, those it builds on, or all sites have, sorted."""
        places = (*self.lineage(site), None)
        return sorted({ref for place in places for ref in self._step_refs.get(place, ())})

    def lineage(self, site: str) -> tuple[str, ...]:
        """The site and those it builds on, each once."""
        found: dict[str, None] = {}
        while site in self.sites and site not in found:
            found[site] = None
            site = self.sites[site].extends
        return tuple(found)

    def site(self, name: str) -> SiteInfo:
        """What is known of a site; the defaults for one that no file mentions."""
        return self.sites.get(name) or SiteInfo(name)

    def prompts(self) -> list[Prompt]:
        """Every prompt of every usable file."""
        return [prompt for same in self.index.values() for prompt in same]

    def in_force(self) -> list[Prompt]:
        """Of equal definitions the one that holds, without those that are switched off."""
        return [same[0] for same in self.index.values() if same[0].enabled]

    def refs(self) -> list[str]:
        """The refs there are prompts for, sorted."""
        return sorted({ref for _, _, ref in self.index})


def check(
    site_types: Path | Sequence[Path],
    prompt_dirs: Sequence[Path],
    *,
    files: Sequence[Path] = (),
    sites: Collection[str] | None = None,
    own_variables: Collection[str] = (),
) -> list[Problem]:
    """All problems of these files, by file and line; raises nothing. `files` are checked on top as if they
    were in a folder of their own. With `sites` (those that are loaded), files for other sites are named as
    unused."""
    base, folders, problems = read_layers(site_types, prompt_dirs)
    extra = [parse_file(path) for path in files]
    layers = settled([*([file] for file in base), *folders, extra], own_variables)
    library = PromptLibrary(layers, problems)
    found = [*library.problems, *(idle(file, sites) for layer in layers[len(base) :] for file in layer)]
    named = {str(path) for path in files}
    listed = {problem for problem in found if problem and (not named or problem.file in named)}
    return sorted(listed, key=lambda one: (one.file, one.line, one.col, one.what))


def read_layers(
    site_types: Path | Sequence[Path], prompt_dirs: Sequence[Path]
) -> tuple[list[ParsedFile], list[list[ParsedFile]], list[Problem]]:
    bases = [site_types] if isinstance(site_types, Path) else list(site_types)
    problems: list[Problem] = []
    folders: list[list[ParsedFile]] = []
    for folder in prompt_dirs:
        try:
            entries = sorted(one for one in folder.iterdir() if one.name[0] != "." and is_entry(one))
        except OSError as exc:
            problems.append(Problem(str(folder), 1, 1, "error", f"cannot be read: {exc.strerror}"))
            continue
        folders.append([parse_file(entry) for entry in entries if entry.suffix == ".xml"])
        problems += [not_read(entry) for entry in entries if entry.suffix != ".xml"]
    return [parse_file(path) for path in bases], folders, problems


def is_entry(path: Path) -> bool:
    """A file, or what cannot be looked at (a link in a circle): that is told, and not passed over."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return False
    except OSError:
        return True


def not_read(entry: Path) -> Problem:
    return Problem(str(entry), 1, 1, "warning", "is not read: only files whose names end in `.xml` are")


def idle(file: ParsedFile, sites: Collection[str] | None) -> Problem | None:
    """A file that changes nothing: it defines nothing, or only for sites that are not there."""
    if not file.usable:
        return None
    names = {entry.name for entry in file.sites}
    everywhere = None in {*(one.site for one in file.prompts), *(one.site for one in file.signals)}
    if not names and not everywhere:
        return Problem(file.file, 1, 1, "warning", "defines nothing, so it is not used")
    if sites is not None and not everywhere and names.isdisjoint(sites):
        listed = ", ".join(f"`{name}`" for name in sorted(names))
        return Problem(file.file, 1, 1, "warning", f"is not used: no site {listed} is loaded")
    return None


def settled(layers: Sequence[Layer], own_variables: Collection[str] = ()) -> list[list[ParsedFile]]:
    """The files without the complaints on variables that a step sets: one of any file for the same site, for
    one it builds on, or for all sites, or a step in Python (`own_variables`)."""
    if not any(file.unknown for layer in layers for file in layer):
        return [list(layer) for layer in layers]
    sets = {(p.site, p.sets) for layer in layers for file in layer for p in file.prompts if p.sets}
    above = {site.name: site.extends for site in merged_sites(layers).values()}

    def known(use: UnknownUse) -> bool:
        if use.name in own_variables or (None, use.name) in sets:
            return True
        place, passed = use.site or "", set[str]()
        while place and place not in passed:
            if (place, use.name) in sets:
                return True
            passed.add(place)
            place = above.get(place, "")
        return False

    return [[file.without(known) for file in layer] for layer in layers]


def goes_before(step: Prompt, prompt: Prompt) -> bool:
    """Whether `prompt` is filled only once `step` is done: it uses its variable, or the step says so."""
    return step.sets in prompt.variables or prompt.ref in step.before


def step_refs(index: Mapping[tuple[str | None, str, str], object]) -> dict[str | None, frozenset[str]]:
    """The refs of own steps by the site that has them."""
    found: dict[str | None, set[str]] = {}
    for site, _, ref in index:
        if ref.startswith(STEP_PREFIX):
            found.setdefault(site, set()).add(ref)
    return {site: frozenset(refs) for site, refs in found.items()}


def step_problems(library: PromptLibrary) -> Iterator[Problem]:
    """Steps that never run: because they wait for each other, or because another sets their variable."""
    places = {(step.site or "", step.item_type) for step in library.prompts() if step.sets}
    said: set[tuple[str, int, str]] = set()
    for site, item_type in sorted(places):
        runs = library.steps(site, item_type)
        named = library.steps_named(site, item_type)
        found = [library.find(ref, site, item_type) for ref in library.refs_of_steps(site)]
        for step in (one for one in found if one is not None and one not in runs):
            if (where := (step.file, step.line, step.ref)) in said:
                continue
            said.add(where)
            what = f"`{step.ref}` never runs: it and others wait for each other's variables"
            if step not in named:
                other = next(one for one in named if one.sets == step.sets)
                what = (
                    f"`{step.ref}` never runs: `{other.ref}` sets `{step.sets}` ({other.file}:{other.line})"
                )
            yield Problem(step.file, step.line, 1, "warning", what)


def index_of(layers: Sequence[Layer]) -> dict[tuple[str | None, str, str], tuple[Prompt, ...]]:
    """Prompts by site, type and ref, the one that holds first: later layers, then later files, then later
    lines."""
    index: dict[tuple[str | None, str, str], tuple[Prompt, ...]] = {}
    for layer in layers:
        for file in layer:
            for prompt in file.prompts:
                key = (prompt.site, prompt.item_type, prompt.ref)
                index[key] = (prompt, *index.get(key, ()))
    return index


def merged_sites(layers: Sequence[Layer]) -> dict[str, SiteInfo]:
    """A site by name; where several entries say something, the last that says it holds."""
    sites: dict[str, SiteInfo] = {}
    for layer in layers:
        for file in layer:
            for entry in file.sites:
                known = sites.get(entry.name) or SiteInfo(entry.name, types=())
                sites[entry.name] = SiteInfo(
                    entry.name,
                    entry.description or known.description,
                    entry.types or known.types,
                    entry.extends or known.extends,
                    tuple(dict.fromkeys((*known.files, entry.file))),
                    entry.questions or known.questions,
                )
    return {name: replace(site, types=inherited_types(site, sites)) for name, site in sites.items()}


def inherited_types(site: SiteInfo, sites: Mapping[str, SiteInfo]) -> tuple[str, ...]:
    """A site's kinds of items: its own, else those of the site that it builds on."""
    passed: set[str] = set()
    while not site.types and site.extends in sites and site.name not in passed:
        passed.add(site.name)
        site = sites[site.extends]
    return site.types or (BASE,)


def across_files(layers: Sequence[Layer]) -> Iterator[Problem]:
    """Equal definitions in two files of one layer: the order of file names decides, which nobody means."""
    for layer in layers:
        first: dict[tuple[str | None, str, str], Prompt] = {}
        for prompt in (prompt for file in layer for prompt in file.prompts):
            key = (prompt.site, prompt.item_type, prompt.ref)
            other = first.setdefault(key, prompt)
            if other.file != prompt.file:
                what = f"duplicate `{prompt.ref}` for {prompt.item_type}: also in {other.file}:{other.line}"
                yield Problem(prompt.file, prompt.line, 1, "warning", f"{what}; this one holds")


def wrong_extends(layers: Sequence[Layer], sites: Mapping[str, SiteInfo]) -> Iterator[Problem]:
    for entry in (entry for layer in layers for file in layer for entry in file.sites):
        what = extends_problem(entry, sites) if entry.extends else ""
        if what:
            yield Problem(entry.file, entry.line, entry.col, "warning", what)


def extends_problem(entry: SiteEntry, sites: Mapping[str, SiteInfo]) -> str:
    if entry.extends not in sites:
        return f'extends="{entry.extends}": no file has such a site{did_you_mean(entry.extends, list(sites))}'
    passed = [entry.name]
    above = entry.extends
    while above in sites:
        if above in passed:
            return f"extends goes in a circle: {' → '.join([*passed, above])}"
        passed.append(above)
        above = sites[above].extends
    return ""
