"""The `use` leg: a multilingual sentence encoder that comes inside a package, in one process of its own."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from core.errors import ModelError
from core.providers.base import LegSpec, Vector
from core.providers.child import Child
from core.providers.line import unpacked

SPEC = LegSpec("use", "universal-sentence-encoder-multilingual-3", 512)
PIECE_CHARS = 2500  # encoded at a time, about 70 ms: what a question waits for at most
PIECE_TEXTS = 32
TEXT_CHARS = 8000  # the encoder averages over a text: what is further down would change nothing
CACHED_QUERIES = 512


class UseEmbedder:
    """Sentence vectors for 16 languages: 512 numbers, length 1. It averages, so chunks have to be short."""

    spec = SPEC
    max_tokens = 110

    def __init__(self) -> None:
        self._child = Child(
            "core.providers.embed_process",
            [],
            name="sentence encoder's process",
            failure=ModelError,
            environment={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )
        self._queries: OrderedDict[str, Vector] = OrderedDict()

    @classmethod
    async def open(cls) -> UseEmbedder:
        """Start the process; the model takes about two seconds to load and the first request waits for it."""
        embedder = cls()
        await embedder._child.launch()
        return embedder

    @property
    def pid(self) -> int | None:
        """The id of the encoder's process, while it runs."""
        return self._child.pid

    async def documents(self, texts: Sequence[str], languages: Sequence[str]) -> list[Vector]:  # noqa: ARG002
        vectors: list[Vector] = []
        for piece in _pieces(texts):
            vectors += await self._encode(piece, urgent=False)
        return vectors

    async def query(self, text: str, language: str) -> Vector:  # noqa: ARG002
        text = text.strip()
        if text in self._queries:
            self._queries.move_to_end(text)
            return self._queries[text]
        (vector,) = await self._encode([text], urgent=True)
        self._queries[text] = vector
        if len(self._queries) > CACHED_QUERIES:
            self._queries.popitem(last=False)
        return vector

    async def close(self) -> None:
        await self._child.close()

    async def _encode(self, texts: Sequence[str], *, urgent: bool) -> list[Vector]:
        # Half a surrogate pair, which broken pages have, is no text to any encoder.
        clean = [text[:TEXT_CHARS].encode("utf-8", "replace").decode() for text in texts]
        made = await self._child.call("encode", {"texts": clean}, urgent=urgent)
        return [unpacked(vector) for vector in made]


def _pieces(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in runs of PIECE_CHARS characters or a single text."""
    piece: list[str] = []
    length = 0
    for text in texts:
        if piece and (length + len(text) > PIECE_CHARS or len(piece) == PIECE_TEXTS):
            yield piece
            piece, length = [], 0
        piece.append(text)
        length += len(text)
    if piece:
        yield piece
