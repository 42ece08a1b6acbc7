"""Prints the slowest tests of several test runs and one closing line over them, in pytest's form.

Reads the JUnit reports that `test.sh` leaves. Usage: total.py DIRECTORY SECONDS, of all together.
"""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

from additions import REFERENCE_SECONDS, read_mean_seconds

RUNS = 3
SLOWEST = 20


def main(directory: Path, seconds: float) -> int:
    """Returns 0 if every run left a report and none of them holds a failure."""
    counts = {"failed": 0, "passed": 0, "skipped": 0, "errors": 0}
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
            tests += [
                (float(case.get("time") or 0), f"{case.get('classname')}: {case.get('name')}")
                for case in suite.iter("testcase")
            ]
    sys.stdout.write(f"\nslowest {SLOWEST} tests\n")
    for duration, name in sorted(tests, reverse=True)[:SLOWEST]:
        sys.stdout.write(f"{duration:8.2f} s  {name}\n")
    additions_seconds = read_mean_seconds(directory)
    sys.stdout.write(
        f"10^7 additions took Python {additions_seconds:.2f} s; where they take "
        f"{REFERENCE_SECONDS} s, the tests take "
        f"{seconds * REFERENCE_SECONDS / additions_seconds / 60:.1f} minutes\n"
    )
    missing = RUNS - len(reports)
    told = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    line = f" {told or 'no tests ran'} in {seconds:.2f}s " + (
        f"({missing} of {RUNS} runs left no report) " if missing else ""
    )
    sys.stdout.write(line.center(100, "=") + "\n")
    return 1 if counts["failed"] or counts["errors"] or missing else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), float(sys.argv[2])))
