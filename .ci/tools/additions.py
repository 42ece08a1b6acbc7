"""Measures how fast this machine is, to compare figures of several machines.

`python additions.py` prints the seconds that 10^7 additions take.
"""

import sys
import time
from pathlib import Path
from statistics import fmean

REFERENCE_SECONDS = 0.45
"""What they take on the machine for which limits of seconds are meant."""


def measure_additions() -> float:
    """Returns the seconds that 10^7 additions take."""
    start = time.perf_counter()
    total = 0
    for _ in range(10**7):
        total += 1  # noqa: SIM113 - what is measured
    return time.perf_counter() - start


def read_mean_seconds(directory: Path) -> float:
    """Returns the mean of what `test.sh` measured before each test run and after the last."""
    return fmean(map(float, (directory / "additions").read_text("utf-8").split()))


if __name__ == "__main__":
    sys.stdout.write(f"{measure_additions():.3f}\n")
