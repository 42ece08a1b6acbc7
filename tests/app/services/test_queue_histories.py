from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.support.queue_histories import Installation, QueueHistory

_OPTIONS = {
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "print_blob": True,
}


@pytest.fixture
def installation(sqlite_file: Path) -> Iterator[Installation]:
    opened = Installation(f"sqlite:///{sqlite_file}")
    QueueHistory.installation = opened
    yield opened
    opened.close()


@pytest.mark.usefixtures("installation")
def test_the_queue_keeps_its_promises_with_an_unreliable_broker_and_machines() -> None:
    """A part of the histories of the test below, the same ones at each run."""
    run_state_machine_as_test(
        QueueHistory,
        settings=settings(max_examples=25, stateful_step_count=25, derandomize=True, **_OPTIONS),
    )


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.usefixtures("installation")
def test_the_queue_keeps_its_promises_in_two_thousand_histories() -> None:
    run_state_machine_as_test(
        QueueHistory, settings=settings(max_examples=2_000, stateful_step_count=40, **_OPTIONS)
    )
