"""Cut a text into passages for embedding: at headings, paragraphs and sentences, never inside a word."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import accumulate

# Weights in thirtieths of a word, so that sums stay whole numbers.
WORD = 30
_IDEOGRAPH = 20  # scripts without spaces: about 1.5 characters a word
_THAI_LETTER = 6  # ... and about 5 letters a word in Thai, Lao, Khmer and Burmese
_LONG_WORD = 20  # letters; longer runs (addresses, base64) cost a model as much as several words
_MAX_RUN = 200  # letters; a longer run without a space is not a word and may be cut

_CJK = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_CJK_CLOSING = (  # never the first of a passage: closing marks, the long-vowel sign, voicing marks
    "\u3001\u3002\uff01\uff1f\uff0c\uff1a\uff1b\u2026\u300d\u300f\u3011\u300b\u3009\uff09\u30fc\u3099\u309a"
    "\u201d\u2019"
)
_THAI = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_ATOM = re.compile(
    rf"(?P<cjk>[{_CJK}][{_CJK_CLOSING}]*)|(?P<thai>[{_THAI}]{{1,{_MAX_RUN}}})|[^\s{_CJK}{_THAI}]{{1,{_MAX_RUN}}}"
)
_SENTENCE_END = re.compile(r"[.!?\u2026\u0964][\"')\]\u00bb\u201d\u2019]*$")
_CJK_SENTENCE_END = re.compile(r"[\u3002\uff01\uff1f]")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_HEADING = re.compile(r"#{1,6}[ \t]")

# How good a place is to cut at; the first is everywhere between two words.
_BETWEEN_WORDS, _SENTENCE, _LINE, _PARAGRAPH, _SECTION = range(5)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Passage `n` (from 0) of a text: `text` is exactly the text's `[start:end]`, in characters."""

    n: int
    text: str
    start: int
    end: int


def cut(text: str, *, max_words: int = 100, overlap_words: int = 10) -> list[Chunk]:
    """The passages of `text`, in order: at most `max_words` each (see `count_words`), together covering all
    but white space. A passage may repeat up to `overlap_words` of the one before (never more than a third
    of `max_words`, and nothing across a heading). White space alone gives no passage. Linear time."""
    atoms = _Atoms(text)
    limit = max(1, max_words) * WORD
    overlap = max(0, min(overlap_words * WORD, limit // 3))
    chunks: list[Chunk] = []
    first = done = 0
    while done < atoms.count:
        end = atoms.best_end(first, done, limit)
        start_at, end_at = atoms.starts[first], atoms.ends[end - 1]
        chunks.append(Chunk(len(chunks), text[start_at:end_at], start_at, end_at))
        done = end
        first = atoms.overlap_start(first, end, overlap, limit)
    return chunks


def count_words(text: str) -> float:
    """How long a text is for `cut`: words between spaces; about 1.5 characters a word for Chinese and
    Japanese, 5 for Thai and its neighbours; a run of more than 20 letters counts as several."""
    return _Atoms(text).total / WORD


class _Atoms:
    """The pieces of a text that are never cut, with their weights and the worth of a cut after each."""

    def __init__(self, text: str) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        weights: list[int] = []
        for match in _ATOM.finditer(text):
            self.starts.append(match.start())
            self.ends.append(match.end())
            weights.append(_weight(match))
        self.count = len(self.starts)
        self.sums = [0, *accumulate(weights)]  # sums[i] is the weight of the first i atoms
        self.levels = self._levels(text)

    @property
    def total(self) -> int:
        return self.sums[-1]

    def best_end(self, first: int, done: int, limit: int) -> int:
        """Where the passage from atom `first` ends (exclusive): past `done`, within `limit`, at the best
        and then latest place of its second half; failing a sentence there, of the whole."""
        last = bisect_right(self.sums, self.sums[first] + limit) - 1
        last = max(last, done + 1)  # one atom heavier than the limit still goes somewhere
        if last >= self.count:
            return self.count
        middle = bisect_left(self.sums, self.sums[first] + limit // 2)
        for lowest in (middle, done + 1):
            candidates = range(max(lowest, done + 1), last + 1)
            best = max(candidates, key=lambda end: (self.levels[end], end), default=last)
            if self.levels[best] > _BETWEEN_WORDS:
                return best
        return last

    def overlap_start(self, first: int, end: int, overlap: int, limit: int) -> int:
        """The atom that the passage after `first`..`end` starts with: up to `overlap` before `end`, at a
        sentence if one starts there; `end` where a section begins or the next atom would no longer fit."""
        if end >= self.count or self.levels[end] == _SECTION:
            return end
        earliest = max(bisect_left(self.sums, self.sums[end] - overlap), first + 1)
        if self.sums[end + 1] - self.sums[earliest] > limit:
            return end
        starts = (at for at in range(earliest, end) if self.levels[at] > _BETWEEN_WORDS)
        return next(starts, earliest)

    def _levels(self, text: str) -> list[int]:
        """levels[i]: the worth of a cut between atom i-1 and atom i."""
        fences = [match.start() for match in _FENCE.finditer(text)]
        levels = [_SECTION] * (self.count + 1)
        for at in range(1, self.count):
            start, before = self.starts[at], self.ends[at - 1]
            in_fence = bool(fences) and bisect_right(fences, before) % 2 == 1
            level = _level(text, self.starts[at - 1], before, start)
            levels[at] = min(level, _SENTENCE if level >= _LINE else _BETWEEN_WORDS) if in_fence else level
        return levels


def _weight(match: re.Match[str]) -> int:
    if match["cjk"]:
        return _IDEOGRAPH
    length = match.end() - match.start()
    if match["thai"]:
        return length * _THAI_LETTER
    return WORD * -(-length // _LONG_WORD)


def _level(text: str, before_start: int, before_end: int, start: int) -> int:
    gap = text[before_end:start]
    lines = gap.count("\n")
    if lines:
        if _HEADING.match(text, start):
            return _SECTION
        return _PARAGRAPH if lines > 1 else _LINE
    before = text[before_start:before_end]
    if _CJK_SENTENCE_END.search(before):
        return _SENTENCE
    if gap and _SENTENCE_END.search(before) and not text[start].islower():
        return _SENTENCE
    return _BETWEEN_WORDS
