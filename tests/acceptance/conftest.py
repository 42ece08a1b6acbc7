"""Prints the acceptance table: one line per row, with a tick if every test of the row passed.

`make acceptance` enables it by an option.
"""

from collections.abc import Iterator

import pytest

from tests.acceptance.acceptance_rows import ROWS, get_row
from tests.acceptance.trainer_kit import KINDS, Kind

_TICKS = {"passed": "✓", "skipped": "skipped", "failed": "FAILED", "": "no test"}
_WORST = ("", "passed", "skipped", "failed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rows", action="store_true", help="print the acceptance table")


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if not config.getoption("--rows", default=False):
        return
    outcomes: dict[str, tuple[str, str]] = {}
    for row, title, outcome in _list_outcomes(terminalreporter):
        outcomes[row] = (title, max(outcome, outcomes.get(row, ("", ""))[1], key=_WORST.index))
    terminalreporter.section("acceptance")
    for row in ROWS:
        title, outcome = outcomes.get(row, ("", ""))
        terminalreporter.write_line(
            f"{_TICKS[outcome]:8} {row:4} {title}",
            red=outcome in {"", "failed"},
            green=outcome == "passed",
        )
    passed = sum(outcome == "passed" for _, outcome in outcomes.values())
    terminalreporter.write_line(f"{passed} of {len(ROWS)} rows hold")


def _list_outcomes(reporter: pytest.TerminalReporter) -> Iterator[tuple[str, str, str]]:
    for category, outcome in (
        ("passed", "passed"),
        ("skipped", "skipped"),
        ("failed", "failed"),
        ("error", "failed"),
    ):
        for report in reporter.getreports(category):
            found = get_row(report.nodeid)
            if found is not None:
                yield *found, outcome


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    """Each of the two kinds of trainer."""
    return request.param  # type: ignore[no-any-return]
