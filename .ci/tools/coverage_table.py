"""Prints the line coverage of each package from one or two JSON reports of coverage.py.

With two reports, the exit status is 1 if a package lost more than 0.3 points.

Usage: coverage_table.py REPORT [LATER REPORT]
"""

import json
import sys
from collections import Counter
from pathlib import Path, PurePosixPath

MAX_LOSS = 0.3


def read_packages(report: Path) -> dict[str, tuple[int, int]]:
    """Returns the covered lines and all lines of each package and of each package in it."""
    covered: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for file, measured in json.loads(report.read_text("utf-8"))["files"].items():
        folders = PurePosixPath(file).parent.parts
        for package in {folders[0], ".".join(folders[:2])}:
            covered[package] += measured["summary"]["covered_lines"]
            lines[package] += measured["summary"]["num_statements"]
    return {package: (covered[package], count) for package, count in lines.items() if count}


def main(paths: list[Path]) -> int:
    """Returns 0 if no package lost coverage."""
    reports = [read_packages(path) for path in paths]
    losses = 0
    for package in sorted(set().union(*reports)):
        counts = [report[package] for report in reports if package in report]
        shares = [100 * covered / lines for covered, lines in counts]
        cells = [
            f"{share:7.2f} % of {lines:6}" for share, (_, lines) in zip(shares, counts, strict=True)
        ]
        if len(shares) == 2:
            change = shares[1] - shares[0]
            losses += change < -MAX_LOSS
            cells.append(f"{change:+7.2f}")
        elif len(reports) == 2:
            cells.append("in the first only" if package in reports[0] else "in the second only")
        sys.stdout.write(f"{package:28}" + "  ".join(cells) + "\n")
    return 1 if losses else 0


if __name__ == "__main__":
    sys.exit(main([Path(argument) for argument in sys.argv[1:]]))
