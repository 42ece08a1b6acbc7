"""Prints one closing line over the JUnit reports of several test runs, in pytest's form.

Usage: total.py DIRECTORY.
"""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

EXPECTED = 3


def main(directory: Path) -> int:
    """Returns 0 if every report is there and holds no failure."""
    counts = {"failed": 0, "passed": 0, "skipped": 0, "errors": 0}
    seconds = 0.0
    reports = sorted(directory.glob("*.xml"))
    for report in reports:
        for suite in ET.parse(report).getroot().iter("testsuite"):  # noqa: S314 - as above
            tests, failed, errors, skipped = (
                int(suite.get(name) or 0) for name in ("tests", "failures", "errors", "skipped")
            )
            counts["failed"] += failed
            counts["errors"] += errors
            counts["skipped"] += skipped
            counts["passed"] += tests - failed - errors - skipped
            seconds += float(suite.get("time") or 0)
    told = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    missing = EXPECTED - len(reports)
    line = f" {told or 'no tests ran'} in {seconds:.2f}s " + (
        f"({missing} of {EXPECTED} runs left no report) " if missing else ""
    )
    sys.stdout.write(line.center(100, "=") + "\n")
    return 1 if counts["failed"] or counts["errors"] or missing else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
