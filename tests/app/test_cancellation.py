"""Tasks that run in the background end, also those that drop a cancellation."""

import asyncio

import pytest

from app.bus import MemoryBus
from app.cancellation import cancel_all
from app.daemons import main as daemons
from app.daemons.judge import Judge
from app.services.workers.broker_users import BrokerUsers
from tests.support.server_fixture import World
from tests.support.waiting import PATIENCE_SECONDS, cancel_after


async def drop_cancellations(number: int) -> None:
    """Waits until it is cancelled once more than `number` times."""
    for _ in range(number):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue
    await asyncio.Event().wait()


async def fail(*_: object) -> None:
    raise ArithmeticError("a fault")


async def test_tasks_that_drop_cancellations_are_cancelled_again() -> None:
    tasks = [asyncio.create_task(drop_cancellations(number)) for number in range(3)]
    await asyncio.sleep(0)
    await asyncio.wait_for(cancel_all(tasks, repeat_seconds=0.01), PATIENCE_SECONDS)
    assert all(task.cancelled() for task in tasks)


async def test_tasks_that_have_ended_stay_as_they_are() -> None:
    failed = asyncio.create_task(fail())
    await asyncio.wait([failed])
    await cancel_all([failed])
    assert isinstance(failed.exception(), ArithmeticError)


async def test_the_daemons_end_at_whatever_step_they_are_cancelled(world: World) -> None:
    users = BrokerUsers(world.settings)
    for steps in range(0, 200, 7):
        work = asyncio.create_task(daemons.run(world.database, world.settings, MemoryBus(), users))
        await cancel_after(work, steps)
        assert work.cancelled(), steps


async def test_a_daemon_that_fails_ends_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Judge, "run", fail)
    before = asyncio.all_tasks()
    with pytest.raises(ArithmeticError, match="a fault"):
        await daemons.run(world.database, world.settings, MemoryBus(), BrokerUsers(world.settings))
    assert asyncio.all_tasks() == before
