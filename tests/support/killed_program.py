"""Kills a program at random moments, and runs it again until it ends."""

import asyncio
import os
import random
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Sequence

from tests.support.waiting import PATIENCE_SECONDS


async def kill_repeatedly(
    command: Sequence[str], kills: int, longest: float
) -> AsyncIterator[None]:
    """Runs a program that prints `begins`, and yields after each of its runs.

    Args:
        command: The program with its arguments.
        kills: Number of runs that are killed; one more follows, which ends by itself.
        longest: Seconds after its begin within which a run is killed.
    """
    chance = random.Random(5)
    for run in range(kills + 1):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert await asyncio.to_thread(process.stdout.readline) == b"begins\n"
            if run < kills:
                time.sleep(chance.uniform(0, longest))
                os.kill(process.pid, signal.SIGKILL)
            await asyncio.to_thread(process.wait, PATIENCE_SECONDS)
        yield
    assert process.returncode == 0
