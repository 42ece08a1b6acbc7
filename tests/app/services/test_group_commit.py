"""Batches that arrive together share a commit, but each is validated separately."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from app.db.engine import Database
from app.domain.errors import (
    UnavailableError,
)
from app.services.telemetry import batches
from app.services.telemetry.batches import Delivery
from app.services.telemetry.group_commit import Intake
from tests.app.services.telemetry_training import Training
from tests.support import records
from tests.support.records import make_delivery

pytestmark = pytest.mark.both_databases(
    "A transaction goes on after a failed statement on SQLite, but not on PostgreSQL.",
    of=(
        "app.db.faults",
        "app.db.repositories.telemetry",
    ),
)


@pytest.fixture
async def intake(database: Database) -> Any:
    started = Intake(database)
    task = asyncio.create_task(started.run())
    yield started
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_batches_that_arrive_together_share_a_commit(
    training: Training, intake: Intake
) -> None:
    commits: list[frozenset[str]] = []
    training.database.listeners.append(commits.append)
    content = [[records.make_points(training.run_id, "loss", [seq])] for seq in range(1, 21)]
    answers = await asyncio.gather(
        *(
            intake.take(make_delivery(training.attempt_id, seq, batch))
            for seq, batch in enumerate(content, start=1)
        ),
        return_exceptions=True,
    )
    assert answers == list(range(1, 21))
    assert len(commits) == 1
    assert await training.read_values("loss") == [float(seq) for seq in range(1, 21)]


async def test_a_refused_batch_does_not_affect_the_others_of_its_group(
    training: Training, intake: Intake
) -> None:
    good = make_delivery(
        training.attempt_id, 1, [records.make_points(training.run_id, "loss", [1])]
    )
    gap = make_delivery(training.attempt_id, 9, [records.make_points(training.run_id, "loss", [9])])
    reserved = make_delivery(
        training.attempt_id, 2, [records.make_points(training.run_id, "evaluation/mean", [9])]
    )
    answers = await asyncio.gather(
        intake.take(good), intake.take(gap), intake.take(reserved), return_exceptions=True
    )
    assert answers[0] == 1
    assert [getattr(answer, "code", None) for answer in answers[1:]] == [
        "seq_gap",
        "reserved_series",
    ]


async def test_a_group_that_fails_is_retried_batch_by_batch(
    training: Training, intake: Intake, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = batches.take_group

    async def fail_for_second_batch(session: Any, given: Sequence[Delivery]) -> Any:
        if any(one.first_seq == 2 for one in given):
            raise RuntimeError("a fault of ours")
        return await taken(session, given)

    monkeypatch.setattr(batches, "take_group", fail_for_second_batch)
    deliveries = [
        make_delivery(
            training.attempt_id, seq, [records.make_points(training.run_id, "loss", [seq])]
        )
        for seq in (1, 2)
    ]
    answers = await asyncio.gather(
        *(intake.take(one) for one in deliveries), return_exceptions=True
    )
    assert answers[0] == 1
    assert isinstance(answers[1], UnavailableError)
    assert await training.read_values("loss") == [1.0]


async def test_batches_that_wait_at_a_shutdown_are_refused_and_not_written(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, begun = batches.take_group, asyncio.Event()

    async def take_and_wait(session: Any, given: Sequence[Delivery]) -> Any:
        await taken(session, given)
        begun.set()
        return await asyncio.Future[Any]()

    monkeypatch.setattr(batches, "take_group", take_and_wait)
    intake = Intake(training.database)
    task = asyncio.create_task(intake.run())
    content = [[records.make_points(training.run_id, "loss", [seq])] for seq in (1, 2)]
    in_transaction = asyncio.create_task(
        intake.take(make_delivery(training.attempt_id, 1, content[0]))
    )
    await begun.wait()
    in_queue = asyncio.create_task(intake.take(make_delivery(training.attempt_id, 2, content[1])))
    await asyncio.sleep(0)
    task.cancel()
    for asked in (in_transaction, in_queue):
        with pytest.raises(UnavailableError):
            await asked
    assert await training.read_values("loss") == []
