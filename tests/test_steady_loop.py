"""The tests' own event loop: limits run by the time that the process had."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time

import pytest

from tests.steady_loop import SteadyLoop

STOP = """
import os, signal, sys, time
process = int(sys.argv[1])
os.kill(process, signal.SIGSTOP)
time.sleep(1.5)
os.kill(process, signal.SIGCONT)
"""


async def test_a_stopped_process_is_late_for_nothing() -> None:
    assert isinstance(asyncio.get_running_loop(), SteadyLoop)
    began = time.monotonic()
    async with asyncio.timeout(1.2):
        stopping = await asyncio.create_subprocess_exec(sys.executable, "-c", STOP, str(os.getpid()))
        await stopping.wait()
    assert time.monotonic() - began >= 1.5


async def test_a_blocked_loop_is_late_for_nothing() -> None:
    async with asyncio.timeout(0.5):
        subprocess.run([sys.executable, "-c", "import time; time.sleep(0.8)"], check=True)
        await asyncio.sleep(0)


async def test_what_never_comes_is_late() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await asyncio.Event().wait()
