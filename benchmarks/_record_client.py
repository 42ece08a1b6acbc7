"""Reads an export in a process that loads the client alone, and prints its peak of memory.

python -m benchmarks._record_client URL TOKEN RUN FORM
"""

import json
import sys
import time
from pathlib import Path
from typing import Any, Final

from palestra.client import Client

SERIES: Final = "loss/td"
FORMS: Final = ("csv", "parquet", "arrow", "points", "frame")
"""Files, which are received piece by piece; all points one by one; and a frame of pandas."""
_KIBIBYTES: Final = 1_024.0


def read_memory(pid: int | str, name: str) -> float:
    """Returns an amount of a process's memory in MiB, for example `VmHWM`."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / _KIBIBYTES
    raise ValueError(f"no {name} of process {pid}")


def _read(client: Client, run_id: str, form: Any) -> tuple[int, int]:
    """Returns the bytes of a file, or the number of points."""
    if form == "points":
        return 0, sum(1 for _ in client.points(run_id, SERIES))
    if form == "frame":
        return 0, len(client.frame(run_id, SERIES))
    return sum(map(len, client.export_records(run_id, format=form))), 0


def main(url: str, token: str, run_id: str, form: str) -> None:
    started = time.perf_counter()
    size, points = _read(Client(url, token, timeout=300), run_id, form)
    seconds = time.perf_counter() - started
    found = {"bytes": size, "points": points, "seconds": seconds}
    print(json.dumps({**found, "peak": read_memory("self", "VmHWM")}))


if __name__ == "__main__":
    main(*sys.argv[1:])
