"""What an explanation names as the reason holds a job back: without it, the job starts.

The small form of `python -m benchmarks.start_estimates`.
"""

import random
from collections import Counter
from typing import Any

from sqlalchemy import update

from app.db.clock import db_now
from app.db.models import JobRow, PoolRow
from benchmarks._start_estimates.blockers import remove_blockers
from benchmarks._start_estimates.simulated_pool import SimulatedPool
from palestra.contract.queue import WaitReason
from tests.support.server_fixture import World


async def make_pool(world: World) -> SimulatedPool:
    pool = SimulatedPool(world, random.Random(4))
    await pool.open(people=5, projects=3, workers=2, slots=2)
    return pool


async def test_a_job_starts_once_its_stated_blocker_is_removed(world: World) -> None:
    pool = await make_pool(world)
    for name in ("dqn 3k", "ppo 8k", "sac pendulum", "dqn 6k"):
        await pool.submit(name, [pool.rng.uniform(100, 900) for _ in range(3)])
    interactive: dict[str, Any] = {
        "priority_class": "interactive",
        "limits": {"wall_seconds": 900},
    }
    await pool.submit("td3 pendulum", [100.0, 200.0, 300.0], **interactive)
    (large,) = await pool.submit("a2c 6k", [50.0])
    (delayed,) = await pool.submit("ppo 16k", [50.0])
    async with world.database.write() as session:
        await session.execute(update(JobRow).where(JobRow.id == large).values(gpus=2))
        delay = {"not_before": db_now(1e6)}
        await session.execute(update(JobRow).where(JobRow.id == delayed).values(**delay))
    seen: Counter[WaitReason] = Counter()
    for step in range(6):
        await pool.start_next()
        if step == 4:
            async with world.database.write() as session:
                await session.execute(update(PoolRow).values(paused_at=db_now()))
        for job_id in await pool.list_waiting():
            (by,) = [one for one in pool.people if await is_of(world, job_id, one.user_id)]
            reasons, has_started = await remove_blockers(world.database, by, job_id)
            assert has_started, (job_id, reasons)
            seen.update(reasons)
        if step == 4:
            async with world.database.write() as session:
                await session.execute(update(PoolRow).values(paused_at=None))
        await pool.end_first()
    assert set(seen) >= {
        WaitReason.BEHIND_JOBS,
        WaitReason.SLOTS_BUSY,
        WaitReason.INTERACTIVE_LIMIT,
        WaitReason.TOO_MANY_GPUS,
        WaitReason.DELAYED,
        WaitReason.POOL_PAUSED,
    }


async def test_a_job_starts_without_the_one_for_which_slots_are_kept(world: World) -> None:
    pool = SimulatedPool(world, random.Random(5))
    await pool.open(people=4, projects=2, workers=2, slots=2, gpus=2)
    seen: Counter[WaitReason] = Counter()
    for name in ("dqn 3k", "ppo 8k", "sac pendulum", "dqn 6k"):
        gpus = [1, 1, 2, 1] if name == "dqn 3k" else [1, 2, 1]
        for wanted in gpus:
            await pool.submit(name, [pool.rng.uniform(100, 900)], gpus=wanted)
    await pool.start_next()
    while not pool.is_idle:
        for job_id in await pool.list_waiting():
            (by,) = [one for one in pool.people if await is_of(world, job_id, one.user_id)]
            reasons, has_started = await remove_blockers(world.database, by, job_id)
            assert has_started, (job_id, reasons)
            seen.update(reasons)
        await pool.end_first()
        await pool.start_next()
    assert seen[WaitReason.RESERVED] > 0, seen
    assert seen[WaitReason.SLOTS_BUSY] > 0, seen


async def is_of(world: World, job_id: str, user_id: str) -> bool:
    async with world.database.read() as session:
        return (await session.get_one(JobRow, job_id)).created_by == user_id
