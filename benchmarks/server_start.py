"""Time from starting the server to its first ready answer, and its resident memory when idle.

python -m benchmarks.server_start [--repeat 7]
"""

import argparse
import tempfile
import time
from pathlib import Path

import psutil

from benchmarks._report import describe_machine, show
from tests.support.process_stack import Stack


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=7)
    repeat = parser.parse_args().repeat
    seconds, memory = [], []
    with tempfile.TemporaryDirectory(prefix="plr-", dir="/tmp") as directory:
        stack = Stack(Path(directory))
        stack.run("app.db", "upgrade")
        stack.start_broker()
        try:
            for _ in range(repeat):
                started = time.perf_counter()
                stack.start_server()
                seconds.append(time.perf_counter() - started)
                time.sleep(3)
                memory.append(
                    psutil.Process(stack.processes["server"].pid).memory_info().rss / 2**20
                )
                stack.stop("server")
        finally:
            stack.__exit__()
    print(describe_machine())
    in_time = show("server start to ready", seconds, "s", bound=3)
    return 0 if show("server idle memory", memory, "MiB", bound=160) and in_time else 1


if __name__ == "__main__":
    raise SystemExit(main())
