"""Completions for a question box: names of items, by the beginnings of their words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from core.database import Database, documents

NAMES = sa.Index("documents_names", documents.c.site, documents.c.name)
MAX_CHARS = 100
MAX_WORDS = 8
# What may stand before a word inside a name.
BEFORE = (" ", "-", "'", "’", "(", "/", '"')
# From Thai on, most scripts write words without spaces: there a word may begin anywhere.
UNSPACED = "\u0e00"

Like = Callable[..., sa.ColumnElement[bool]]


class Suggester:
    """Reads names alone, from an index of their own: quick enough to be asked at every letter."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def names(self, typed: str, *, among: Sequence[str], limit: int) -> list[str]:
        """At most `limit` names of items of these sites in which every word typed begins a word. Those that
        begin with what was typed come first, then the shorter ones. Raises StoreError."""
        words = typed[:MAX_CHARS].split()[:MAX_WORDS]
        if not words or not among:
            return []

        def work(c: Connection) -> list[str]:
            # SQLite's LIKE takes the two cases of a letter for one; PostgreSQL has ILIKE for that.
            name: sa.ColumnElement[str] = documents.c.name
            like = name.ilike if c.dialect.name == "postgresql" else name.like
            query = (
                sa.select(name)
                .where(documents.c.site.in_(list(among)), *(_has(like, word) for word in words))
                .group_by(name)
                .order_by(sa.desc(_like(like, " ".join(words), [_start])), sa.func.length(name), name)
                .limit(limit)
            )
            return list(c.execute(query).scalars())

        return await self._database.read(work)


def _has(like: Like, word: str) -> sa.ColumnElement[bool]:
    anywhere = _like(like, word, [_anywhere])
    if any(letter >= UNSPACED for letter in word):
        return anywhere
    # One look spares most names the other eight.
    return sa.and_(anywhere, _like(like, word, [_start, *(_after(sign) for sign in BEFORE)]))


def _like(like: Like, text: str, shapes: Iterable[Callable[[str], str]]) -> sa.ColumnElement[bool]:
    """SQLite knows the two cases of ASCII letters only: others are asked for in both."""
    forms = {text} if text.isascii() else {text, text.lower(), text.upper(), text.lower().capitalize()}
    patterns = [shape(_literal(form)) for shape in shapes for form in sorted(forms)]
    return sa.or_(*(like(pattern, escape="\\") for pattern in patterns))


def _literal(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _start(text: str) -> str:
    return f"{text}%"


def _anywhere(text: str) -> str:
    return f"%{text}%"


def _after(sign: str) -> Callable[[str], str]:
    return lambda text: f"%{sign}{text}%"
