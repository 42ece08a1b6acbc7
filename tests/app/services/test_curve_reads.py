"""How curves are read: calls of the database for a query, and many curves reduced together."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from app.db.drivers.sqlite import SingleCallConnection
from app.db.engine import Database
from app.metrics import pyramid
from app.services.curves import buckets, curves, stored_curves
from app.services.curves.buckets import BucketRequest
from app.services.telemetry import compaction
from palestra.contract.queries import SeriesQuery
from tests.app.services.telemetry_training import Training
from tests.support import records

NAMES = tuple(f"s/{number}" for number in range(2 * stored_curves._TOGETHER + 1))


async def send_curves(training: Training, *, is_compacted: bool) -> None:
    """Sends curves of different lengths, some values of which are not finite."""
    chance = random.Random(5)
    sent = [
        records.make_points(
            training.run_id,
            name,
            sorted(chance.sample(range(40_000), 40 * number + 1)),
            [chance.choice([chance.gauss(0, 1), "NaN"]) for _ in range(40 * number + 1)],
        )
        for number, name in enumerate(NAMES)
    ]
    await training.send(1, sent)
    if is_compacted:
        assert await compaction.compact_tail(training.database, training.run_id) == 1


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    made: list[object] = []
    call = SingleCallConnection.call_in_thread

    async def note(self: SingleCallConnection, function: Callable[[Any], Any]) -> Any:
        made.append(function)
        return await call(self, function)

    monkeypatch.setattr(SingleCallConnection, "call_in_thread", note)
    return made


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("names", "most"), [(NAMES[:1], 6), (NAMES, 7)])
async def test_a_query_of_many_curves_takes_few_calls(
    training: Training,
    calls: list[object],
    monkeypatch: pytest.MonkeyPatch,
    names: tuple[str, ...],
    most: int,
) -> None:
    monkeypatch.setattr(pyramid, "LEAST_LIVE_POINTS", 1)
    await send_curves(training, is_compacted=True)
    wanted = SeriesQuery(runs=(training.run_id,), names=names, buckets=10)
    calls.clear()
    found = await curves.read(training.database, training.world.admin, wanted)
    assert found.answer is not None
    assert found.answer.found.n.sum() == sum(40 * NAMES.index(name) + 1 for name in names)
    # The runs, their counts, their attempts, blocks with tails, cells, blocks without cells, and
    # the end.
    assert len(calls) == most


@pytest.mark.parametrize("is_compacted", [False, True])
async def test_curves_that_are_reduced_together_are_those_reduced_alone(
    training: Training, database: Database, monkeypatch: pytest.MonkeyPatch, *, is_compacted: bool
) -> None:
    # Longer blocks have cells, others do not.
    monkeypatch.setattr(pyramid, "LEAST_LIVE_POINTS", 1_000)
    await send_curves(training, is_compacted=is_compacted)
    run = training.run_id
    keys = [(run, "evaluation/mean"), *((run, name) for name in NAMES)]
    request = BucketRequest(keys, start=3_000, end=31_000, buckets=50)
    async with database.read() as session:
        together = buckets.reduce(await buckets.load(session, request))
        for row, key in enumerate(keys):
            one = BucketRequest([key], start=3_000, end=31_000, buckets=50)
            alone = buckets.reduce(await buckets.load(session, one))
            assert alone.grid == together.grid
            for name in ("n", "nonfinite", "min", "max", "mean", "last"):
                column, expected = getattr(together, name)[row], getattr(alone, name)[0]
                assert np.array_equal(column, expected, equal_nan=True), (key, name)
