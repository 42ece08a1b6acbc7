"""A worker whose clock is wrong is flagged, with the seconds and the side."""

from collections.abc import Callable

import pytest

from app.db import clock
from app.services.workers import heartbeats, workers
from palestra.cli.output import describe_clock
from palestra.contract.pools import WorkerView
from palestra.contract.registration import WorkerHeartbeat
from tests.support.server_fixture import World


async def report(world: World, worker_id: str, ahead: float | None) -> WorkerView:
    """Sends a heartbeat of a worker whose clock is so many seconds ahead; returns its view."""
    async with world.database.write() as session:
        now = (await clock.now(session)).timestamp()
        body = WorkerHeartbeat(wall=None if ahead is None else now + ahead)
        own = world.own[worker_id]
        await heartbeats.record_heartbeat(session, own, worker_id, body, world.settings)
    async with world.database.read() as session:
        page = await workers.list_workers(session, world.admin)
    return next(one for one in page.items if one.id == worker_id)


@pytest.mark.parametrize(
    ("ahead", "is_wrong", "text"),
    [
        (3.0, False, ""),
        (299.0, False, ""),
        (-290.0, False, ""),
        (400.0, True, "clock 400 s ahead of the server's"),
        (-7200.0, True, "clock 7200 s behind the server's"),
        (-5e9, True, "clock 5000000000 s behind the server's"),
    ],
)
async def test_a_clock_is_wrong_beyond_five_minutes(
    world: World, passed_seconds: Callable[[], float], ahead: float, is_wrong: bool, text: str
) -> None:
    worker_id = (await world.register()).worker_id
    found = await report(world, worker_id, ahead)
    assert found.clock_skew_seconds == pytest.approx(ahead, abs=passed_seconds(), rel=0)
    # Without the time between its making and its arrival.
    exact = found.model_copy(update={"clock_skew_seconds": ahead})
    assert (found.has_wrong_clock, describe_clock(exact)) == (is_wrong, text)


async def test_a_clock_that_was_set_is_no_longer_flagged(world: World) -> None:
    worker_id = (await world.register()).worker_id
    assert (await report(world, worker_id, 900.0)).has_wrong_clock
    assert not (await report(world, worker_id, 0.0)).has_wrong_clock


async def test_workers_of_earlier_versions_say_nothing(world: World) -> None:
    worker_id = (await world.register()).worker_id
    found = await report(world, worker_id, None)
    assert (found.clock_skew_seconds, found.has_wrong_clock) == (None, False)
