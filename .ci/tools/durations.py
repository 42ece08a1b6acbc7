"""Judges how long each test took, and prints tables by cause and by module.

Reads the reports that `make test-durations` leaves. A test may take 20 s, one of
`tests/long_tests.txt` 90 s, on a machine that does 10^7 additions in 0.45 s, and longer on a
slower one. What all tests of a process share, such as a stack, is no part of it.
Usage: durations.py DIRECTORY.
"""

import json
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from additions import REFERENCE_SECONDS, read_mean_seconds

LONG_TESTS = Path("tests/long_tests.txt")
MAX_LONG_TESTS = 10
LIMIT_SECONDS = 20.0
LONG_LIMIT_SECONDS = 90.0
PHASES = ("setup", "call", "teardown")
DOCUMENTS = ("test_documents.py", "test_docs.py", "test_admin_page.py")
MODULES = 40


@dataclass(frozen=True, slots=True)
class Duration:
    """What one test took in seconds: set-up without fixtures of the session, call and tear-down."""

    test: str
    marks: frozenset[str]
    seconds: float
    setup_seconds: float
    """Set-up, with fixtures of the session."""
    cpu_seconds: float
    """Processor time of the test's process and of its children that have ended."""

    @property
    def module(self) -> str:
        return self.test.partition("::")[0]


CAUSES: dict[str, Callable[[Duration], bool]] = {
    "documents": lambda test: test.module.endswith(DOCUMENTS),
    "browser": lambda test: "browser" in test.marks,
    "processes": lambda test: "processes" in test.marks,
    "dashboard": lambda test: test.module.startswith("frontend/"),
    "PostgreSQL": lambda test: "postgresql" in test.test.partition("[")[2],
    "SQLite": lambda test: "sqlite" in test.test.partition("[")[2],
    "trainings": lambda test: test.module.startswith(
        ("tests/unit/workers", "tests/acceptance", "tests/learning", "tests/differential")
    ),
    "others": lambda _: True,
}
"""A test counts for the first cause that holds."""


def read_durations(directory: Path) -> Iterator[Duration]:
    """Yields the durations of all runs that left a report in a directory."""
    for report in sorted(directory.glob("*.json")):
        for test in json.loads(report.read_text("utf-8")):
            phases = [test[phase] for phase in PHASES if phase in test]
            setup = test.get("setup", {})
            yield Duration(
                test["id"],
                frozenset(test["marks"]),
                sum(phase["seconds"] for phase in phases) - setup.get("shared_seconds", 0.0),
                setup.get("seconds", 0.0),
                sum(phase["cpu_seconds"] + phase["children_cpu_seconds"] for phase in phases),
            )
    for case in ET.parse(directory / "frontend.xml").getroot().iter("testcase"):  # noqa: S314 - ours
        name = f"frontend/{case.get('classname')}::{case.get('name')}"
        yield Duration(name, frozenset(), float(case.get("time") or 0), 0.0, 0.0)


def read_long_tests() -> set[str]:
    """Returns the tests that may take longer than the others."""
    lines = LONG_TESTS.read_text("utf-8").splitlines()
    return {line.strip() for line in lines if line.strip() and not line.startswith("#")}


def print_table(title: str, groups: dict[str, list[Duration]]) -> None:
    sys.stdout.write(f"\n{title:60} tests  seconds   set-up  processor  waiting\n")
    for name, tests in sorted(
        groups.items(), key=lambda group: -sum(test.seconds for test in group[1])
    )[:MODULES]:
        seconds, setup, cpu = (
            sum(getattr(test, member) for test in tests)
            for member in ("seconds", "setup_seconds", "cpu_seconds")
        )
        waiting = sum(max(0.0, test.seconds - test.cpu_seconds) for test in tests)
        sys.stdout.write(
            f"{name:60} {len(tests):5} {seconds:8.1f} {setup:8.1f} {cpu:10.1f} {waiting:8.1f}\n"
        )


def main(directory: Path) -> int:
    """Returns 0 if no test took longer than it may."""
    durations = list(read_durations(directory))
    causes: dict[str, list[Duration]] = {}
    modules: dict[str, list[Duration]] = {}
    for test in durations:
        cause = next(name for name, holds in CAUSES.items() if holds(test))
        causes.setdefault(cause, []).append(test)
        modules.setdefault(test.module, []).append(test)
    print_table("cause", causes)
    print_table("module", modules)
    long_tests = read_long_tests()
    slowness = max(1.0, read_mean_seconds(directory) / REFERENCE_SECONDS)
    faults = [
        f"{test.test} took {test.seconds:.1f} s, may take {limit:.0f} s"
        for test in durations
        if test.seconds
        > (limit := slowness * (LONG_LIMIT_SECONDS if test.test in long_tests else LIMIT_SECONDS))
    ]
    if len(long_tests) > MAX_LONG_TESTS:
        faults.append(f"{LONG_TESTS} holds {len(long_tests)} tests, may hold {MAX_LONG_TESTS}")
    unknown = long_tests - {test.test for test in durations}
    faults += [f"{LONG_TESTS} names {test}, which did not run" for test in sorted(unknown)]
    sys.stdout.write(f"\nlimits are stretched by {slowness:.2f} for this machine\n")
    sys.stdout.write("".join(f"{fault}\n" for fault in faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
