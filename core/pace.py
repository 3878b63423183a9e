"""Long work on the event loop in pieces: others have their turn between them."""

from __future__ import annotations

import asyncio
import time

TURN_S = 0.005  # of work between two turns of the others; less is not worth the change


class Pace:
    """Of one piece of work: call `turn` after each part of it. What is done within `TURN_S` waits for nobody,
    so that short work is as quick and as whole as without it."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    async def turn(self) -> None:
        """Let everything else that is ready run, if the work has had the loop for long enough."""
        if time.monotonic() - self._since >= TURN_S:
            await asyncio.sleep(0)
            self._since = time.monotonic()
