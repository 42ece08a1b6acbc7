"""A pytest plugin that records how long each test took.

`--durations-json PATH` writes a list with an object per test: `id`, `marks`, `fixtures`, and for
each of `setup`, `call` and `teardown` the outcome, the wall-clock seconds, and the processor
seconds of the test's process and of its children that have ended. `shared_seconds` of the set-up
went into fixtures of the session.
"""

import json
import os
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

_CPU_SECONDS = pytest.StashKey[tuple[float, float]]()
_SHARED_SECONDS = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--durations-json", metavar="PATH", help="write the durations of each test")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--durations-json")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_DurationRecorder(Path(path)))


def _measure(item: pytest.Item) -> Generator[None, Any, Any]:
    before = os.times()
    try:
        return (yield)
    finally:
        after = os.times()
        item.stash[_CPU_SECONDS] = (
            sum(after[:2]) - sum(before[:2]),
            sum(after[2:4]) - sum(before[2:4]),
        )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from _measure(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from _measure(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from _measure(item))


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Adds up what fixtures of the session take."""
    if fixturedef.scope != "session":
        return (yield)
    stash = request.session.stash
    before = time.perf_counter()
    try:
        return (yield)
    finally:
        stash[_SHARED_SECONDS] = stash.get(_SHARED_SECONDS, 0.0) + time.perf_counter() - before


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds what the recorder writes to the report, which xdist carries to the first process."""
    report = yield
    shared_seconds = item.session.stash.get(_SHARED_SECONDS, 0.0)
    item.session.stash[_SHARED_SECONDS] = 0.0
    vars(report).update(
        shared_seconds=shared_seconds,
        cpu_seconds=item.stash.get(_CPU_SECONDS, (0.0, 0.0)),
        fixtures=list(getattr(item, "fixturenames", ())),
        marks=sorted({mark.name for mark in item.iter_markers()}),
    )
    return report


class _DurationRecorder:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._tests: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        test = self._tests.setdefault(
            report.nodeid,
            {"id": report.nodeid, "marks": report.marks, "fixtures": report.fixtures},
        )
        own, children = report.cpu_seconds
        test[report.when] = {
            "outcome": report.outcome,
            "seconds": round(report.duration, 4),
            "cpu_seconds": round(own, 4),
            "children_cpu_seconds": round(children, 4),
        }
        if report.when == "setup":
            test["setup"]["shared_seconds"] = round(report.shared_seconds, 4)

    def pytest_sessionfinish(self) -> None:
        self._path.write_text(json.dumps(list(self._tests.values())), encoding="utf-8")
