"""The server's threads share few arenas of the allocator."""

import os
import platform
import subprocess
import sys

import pytest

from app.allocator import ARENAS

PROGRAM = """
import ctypes, sys, threading
from app.allocator import limit_arenas

limited = limit_arenas() if "limit" in sys.argv else None
together = threading.Barrier(8)

def allocate():
    together.wait()
    kept = [bytes(50_000) for _ in range(100)]
    together.wait()
    del kept

threads = [threading.Thread(target=allocate) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(limited, flush=True)
ctypes.CDLL(None).malloc_stats()
"""


def run(*arguments: str, **environment: str) -> tuple[str, int]:
    """Returns what the program says of the limit, and how many arenas it has."""
    inherited = {key: value for key, value in os.environ.items() if key != "MALLOC_ARENA_MAX"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip(), done.stderr.count("Arena ")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has arenas")
def test_threads_share_few_arenas_unless_the_operator_chose_another_number() -> None:
    assert run()[1] > ARENAS
    assert run("limit") == ("True", ARENAS)
    limited, arenas = run("limit", MALLOC_ARENA_MAX="4")
    assert limited == "False"
    assert arenas > ARENAS
