"""Prints the slowest tests of several test runs and one closing line over them, in pytest's form.

Reads the JUnit reports that `test.sh` leaves. Usage: total.py DIRECTORY.
"""

import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

RUNS = 3
SLOWEST = 20


def main(directory: Path) -> int:
    """Returns 0 if every run left a report and none of them holds a failure."""
    counts = {"failed": 0, "passed": 0, "skipped": 0, "errors": 0}
    seconds = 0.0
    tests: list[tuple[float, str]] = []
    reports = sorted(directory.glob("*.xml"))
    for report in reports:
        for suite in ET.parse(report).getroot().iter("testsuite"):  # noqa: S314 - as above
            count, failed, errors, skipped = (
                int(suite.get(name) or 0) for name in ("tests", "failures", "errors", "skipped")
            )
            counts["failed"] += failed
            counts["errors"] += errors
            counts["skipped"] += skipped
            counts["passed"] += count - failed - errors - skipped
            seconds += float(suite.get("time") or 0)
            tests += [
                (float(case.get("time") or 0), f"{case.get('classname')}: {case.get('name')}")
                for case in suite.iter("testcase")
            ]
    sys.stdout.write(f"\nslowest {SLOWEST} tests; ")
    sys.stdout.write(f"10^7 additions take Python {measure_additions():.2f} s here\n")
    for duration, name in sorted(tests, reverse=True)[:SLOWEST]:
        sys.stdout.write(f"{duration:8.2f} s  {name}\n")
    missing = RUNS - len(reports)
    told = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    line = f" {told or 'no tests ran'} in {seconds:.2f}s " + (
        f"({missing} of {RUNS} runs left no report) " if missing else ""
    )
    sys.stdout.write(line.center(100, "=") + "\n")
    return 1 if counts["failed"] or counts["errors"] or missing else 0


def measure_additions() -> float:
    """Returns the seconds that 10^7 additions take, to compare figures of several machines."""
    start = time.perf_counter()
    total = 0
    for _ in range(10**7):
        total += 1  # noqa: SIM113 - what is measured
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
