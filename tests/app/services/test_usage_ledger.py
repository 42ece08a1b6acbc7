"""The ledger of usage: single entries, and 30 simulated days compared with a rebuild."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy import func, select

from app.daemons.remover import ProjectRemover
from app.db.clock import now
from app.db.engine import Database
from app.db.models import (
    AttemptRow,
    JobRow,
    RunRow,
    SnapshotRow,
    UsageAccountRow,
    UsageEntryRow,
)
from app.domain.queue import usage
from app.services.artifacts.blob_store import BlobStore
from palestra.contract.names import new_id
from palestra.contract.states import FINAL_JOB_STATES, Cause, JobState, Outcome, SnapshotState
from tests.app.services.test_project_removal import delete
from tests.support.queue_steps import run_for
from tests.support.server_fixture import World, advance_clock

both_databases = pytest.mark.both_databases(
    "Usage is added up by a statement of each database.", of=("app.db.repositories.usage",)
)

DAY = 86_400.0
JOBS = 24


@dataclass
class Recorder:
    """What the test saw of each attempt: start, end, and until when its work counts."""

    intervals: list[tuple[datetime, datetime, datetime]] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)


async def read_interval(database: Database, attempt_id: str) -> tuple[datetime, datetime]:
    async with database.read() as session:
        row = await session.get_one(AttemptRow, attempt_id)
    assert row.ended_at is not None
    return row.started_at, row.ended_at


async def save_snapshot(world: World, run_id: str, attempt_id: str) -> datetime:
    """Stores a verified snapshot of an attempt; returns when it was made."""
    async with world.database.write() as session:
        made = await now(session)
        run = await session.get_one(RunRow, run_id)
        session.add(
            SnapshotRow(
                id=new_id("snp"),
                project_id=world.project_id,
                experiment_id=run.experiment_id,
                run_id=run_id,
                attempt_id=attempt_id,
                state=SnapshotState.VERIFIED.value,
                reason="periodic",
                fence=1,
                seq=1,
                env_step=1,
                update=1,
                episode=1,
                format_version=1,
                resume_exact=True,
                size=0,
                created_at=made,
            )
        )
    return made


async def run_attempt(
    world: World, seen: Recorder, job_id: str, worker: str, rng: random.Random
) -> None:
    """Runs one attempt of a job until it succeeds, fails, is paused, or its machine is lost."""
    async with world.database.read() as session:
        number = (await session.get_one(JobRow, job_id)).attempt + 1
    order = (await world.start(job_id, worker, attempt=number)).work_order
    attempt = order.attempt_id
    advance_clock(rng.expovariate(1 / 60_000))
    snapshot = None
    if rng.random() < 0.5:
        snapshot = await save_snapshot(world, order.runs[0].run_id, attempt)
        advance_clock(rng.expovariate(1 / 30_000))
    await world.renew(attempt)
    end = rng.choices(["succeeded", "failed", "paused", "lost"], [4, 2, 2, 3])[0]
    if end == "lost":
        await world.send_heartbeat(worker, live=(), dead=[attempt])
    elif end == "paused":
        await world.pause(job_id)
        await world.release(attempt, Outcome.PAUSED, Cause.USER)
    elif end == "failed":
        await world.release(attempt, Outcome.FAILED, Cause.USER_EXCEPTION)
    else:
        await world.release(attempt, Outcome.SUCCEEDED, Cause.BUDGET)
    start, ended = await read_interval(world.database, attempt)
    kept = ended if end != "lost" else snapshot or start
    seen.intervals.append((start, ended, kept))
    seen.ends[end] += 1


async def run_job(world: World, seen: Recorder, seed: int, workers: list[str]) -> None:
    """Runs a job until it succeeds: resumed after pauses, moved after losses, retried once."""
    rng = random.Random(seed)
    job = await world.submit_one_job(seeds=[seed])
    job_id, retries = job.id, 0
    for _ in range(20):
        await run_attempt(world, seen, job_id, rng.choice(workers), rng)
        state = (await world.job(job_id)).state
        if state is JobState.PAUSED:
            await world.resume(job_id)
        elif state is JobState.FAILED and retries == 0:
            job_id, retries = (await world.retry(job.run_ids[0])).id, 1
            seen.ends["retried"] += 1
        elif state in FINAL_JOB_STATES:
            return
        advance_clock(700)


async def test_thirty_days_with_retries_failovers_and_deletions_equal_a_rebuild(
    world: World, database: Database, tmp_path: Path
) -> None:
    workers = [(await world.register(name=name, slots=1)).worker_id for name in ("w1", "w2")]
    async with database.read() as session:
        began = await now(session)
    seen = Recorder()
    for seed in range(JOBS):
        await run_job(world, seen, seed, workers)
    async with database.read() as session:
        present = await now(session)
    assert (present - began).total_seconds() > 20 * DAY
    assert min(seen.ends[one] for one in ("succeeded", "failed", "paused", "lost", "retried")) > 3
    await check(database, seen)
    await delete(world)
    store = BlobStore(tmp_path / "blobs", 0)
    assert await ProjectRemover(database, store).tick() > 0
    async with database.read() as session:
        for model in (JobRow, RunRow, AttemptRow):
            assert await session.scalar(select(func.count()).select_from(model)) == 0
    await check(database, seen)


async def check(database: Database, seen: Recorder) -> None:
    """Compares entries and account with what the attempts' intervals give."""
    async with database.read() as session:
        entries = (await session.scalars(select(UsageEntryRow))).all()
        (account,) = (await session.scalars(select(UsageAccountRow))).all()
    used = sorted((one.started_at, one.ended_at) for one in entries if one.kind == "used")
    lost = sorted((one.started_at, one.ended_at) for one in entries if one.kind == "lost")
    assert used == sorted((start, kept) for start, _, kept in seen.intervals if kept > start)
    assert lost == sorted((kept, end) for _, end, kept in seen.intervals if end > kept)
    rebuilt = sum(usage.weighted_seconds(1, start, kept) for start, _, kept in seen.intervals)
    assert account.weighted_seconds == pytest.approx(rebuilt, rel=1e-9)


@both_databases
async def test_the_ledger_books_intervals_and_the_account_is_their_sum(
    world: World, passed_seconds: Callable[[], float]
) -> None:
    worker = (await world.register(slots=2)).worker_id
    job = await world.submit_one_job()
    await run_for(world, job.id, worker, 90)
    async with world.database.read() as session:
        (entry,) = (await session.scalars(select(UsageEntryRow))).all()
        (account,) = (await session.scalars(select(UsageAccountRow))).all()
        present = await now(session)
    assert (entry.kind, entry.devices, entry.is_gpu) == ("used", 1, False)
    assert (entry.pool, entry.environment) == ("default", "CartPole-v1")
    used = (entry.ended_at - entry.started_at).total_seconds()
    decayed = usage.decayed_seconds(account.weighted_seconds, present)
    assert (used, decayed) == (pytest.approx(90, abs=passed_seconds()),) * 2


@both_databases
async def test_what_the_infrastructure_lost_is_charged_to_nobody(world: World) -> None:
    worker = (await world.register(slots=1)).worker_id
    job = await world.submit_one_job()
    attempt = (await world.start(job.id, worker)).work_order.attempt_id
    advance_clock(120)
    await world.send_heartbeat(worker, live=(), dead=[attempt])
    async with world.database.read() as session:
        (entry,) = (await session.scalars(select(UsageEntryRow))).all()
        accounts = (await session.scalars(select(UsageAccountRow))).all()
    assert entry.kind == "lost"
    assert entry.attempt_id == attempt
    assert not accounts
