"""What a decision of the dispatcher costs, by the length of the queue.

A pool of 125 workers with 1,000 busy slots has the queued jobs of 500 people in 20 projects. One
attempt ends, and the next decision assigns its slot; then a whole batch of slots falls free at
once. Nothing trains: attempts are rows.

Other programs on the machine prolong a decision; the time that its own process computed is printed
beside it.

    python -m benchmarks.queue_decisions [--database postgresql | sqlite] [--jobs 1000 10000 100000]
        [--plot FILE.svg]
"""

import argparse
import asyncio
import gc
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from sqlalchemy import insert, select, text, update

from app.db.clock import now
from app.db.engine import Database, Session
from app.db.migrate import upgrade
from app.db.models import (
    AttemptRow,
    ExperimentRow,
    JobRow,
    PoolRow,
    ProjectPoolRow,
    ProjectRow,
    UsageAccountRow,
    UserRow,
    WorkerRow,
)
from app.db.models.usage import QueueGroupRow
from app.domain.queue import usage
from app.services.jobs import dispatch_plan
from app.services.queue.equipped_workers import EquippedWorkers
from benchmarks._plot import write_plot
from benchmarks._report import describe_machine, find_quantile, show
from benchmarks.audit_log import database_url
from palestra.contract.documents import encode_canonical_json
from palestra.contract.names import new_id
from palestra.contract.upgrade import load_definition
from tests.support.server_fixture import make_definition, registration

PEOPLE: Final = 500
PROJECTS: Final = 20
WORKERS: Final = 125
SLOTS: Final = 8
SEEDS: Final = 10
"""Jobs of each experiment."""
BATCH: Final = 500
MEDIAN_BOUND_MS: Final = 5.0
P99_BOUND_MS: Final = 25.0
ASSIGNMENTS_BOUND: Final = 500.0
_ROWS: Final = 2_000
"""Rows of one insert."""


@dataclass
class Pool:
    """The rows that the program made, and the jobs that hold slots."""

    database: Database
    rng: random.Random
    people: list[tuple[str, str]] = field(default_factory=list)
    """Project ID and user ID of each person."""
    workers: list[str] = field(default_factory=list)
    live: list[tuple[str, str, int]] = field(default_factory=list)
    """Job ID, worker ID and slot of each live attempt."""


async def build(database: Database, jobs: int) -> Pool:
    """Fills an empty database with people, projects, workers and queued jobs."""
    pool = Pool(database, random.Random(0))
    projects = [f"prj_{number:02}" for number in range(PROJECTS)]
    users = [f"usr_{number:03}" for number in range(PEOPLE)]
    pool.people = [(projects[number % PROJECTS], user) for number, user in enumerate(users)]
    async with database.write() as session:
        await _insert(
            session, ProjectRow, [{"id": one, "slug": one, "name": one} for one in projects]
        )
        await _insert(session, UserRow, [{"id": one, "name": one} for one in users])
        await _insert(session, PoolRow, [{"id": "pol_1", "name": "lab"}])
        admissions = [
            {"pool_id": "pol_1", "project_id": one, "share": 1.0 + number % 3}
            for number, one in enumerate(projects)
        ]
        await _insert(session, ProjectPoolRow, admissions)
        await _insert(session, WorkerRow, [_worker(pool, number) for number in range(WORKERS)])
        present = await now(session)
        accounts = [
            {
                "pool": "lab",
                "project_id": project_id,
                "user_id": user_id,
                "weighted_seconds": pool.rng.expovariate(1 / 1e6) * usage.weight(present),
            }
            for project_id, user_id in pool.people
        ]
        await _insert(session, UsageAccountRow, accounts)
    await _queue(pool, jobs + WORKERS * SLOTS)
    await _start_first(pool)
    async with database.engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            await (await connection.execution_options(isolation_level="AUTOCOMMIT")).execute(
                text("ANALYZE")
            )
    return pool


def _worker(pool: Pool, number: int) -> dict[str, Any]:
    body = registration(name=f"w{number:03}", slots=SLOTS)
    worker_id = new_id("wrk")
    pool.workers.append(worker_id)
    return {
        "id": worker_id,
        "name": body.name,
        "pool": "lab",
        "queue": f"palestra.pool.lab.{worker_id}",
        "host": body.host,
        "boot_id": body.boot_id,
        "pid": body.pid,
        "slots": SLOTS,
        "gpus": [],
        "gpu_count": 0,
        "work_order_versions": [1, 2],
        "version": body.version,
        "hardware": {},
        "packages": {},
        "catalogue": body.catalogue.model_dump(mode="json"),
        "silent_seconds": 1e9,
    }


async def _queue(pool: Pool, jobs: int) -> None:
    groups = []
    experiments = []
    rows = []
    definition = encode_canonical_json(load_definition(json.dumps(make_definition()))).decode()
    for number in range(jobs // SEEDS):
        project_id, user_id = pool.people[number % PEOPLE]
        experiment_id = f"exp-{number:05}"
        experiments.append(
            {
                "id": experiment_id,
                "project_id": project_id,
                "identity_hash": f"{number:064}",
                "definition_hash": f"{number:064}",
                "schema_version": 2,
                "notes": "",
                "name": experiment_id,
                "kind": "rl",
                "definition": definition,
                "code": {"kind": "builtin"},
                "agent": "dqn",
                "env": "CartPole-v1",
                "created_by": user_id,
            }
        )
        rows += [
            {
                "id": new_id("job"),
                "project_id": project_id,
                "experiment_id": experiment_id,
                "schedule": "train",
                "state": "queued",
                "pool": "lab",
                "priority": pool.rng.choice([0, 0, 0, 1]),
                "seed_index": seed,
                "gpus": 0,
                "resources": {},
                "limits": {},
                "work_order_version": 2,
                "created_by": user_id,
            }
            for seed in range(SEEDS)
        ]
        groups.append((project_id, user_id))
    async with pool.database.write() as session:
        await _insert(session, ExperimentRow, experiments)
        await _insert(session, JobRow, rows)
        group_rows = [
            {
                "pool": "lab",
                "priority_class": "normal",
                "project_id": project_id,
                "user_id": user_id,
            }
            for project_id, user_id in sorted(set(groups))
        ]
        await _insert(session, QueueGroupRow, group_rows)


async def _start_first(pool: Pool) -> None:
    async with pool.database.write() as session:
        first = (await session.scalars(select(JobRow.id).limit(WORKERS * SLOTS))).all()
        slots = [(worker, slot) for worker in pool.workers for slot in range(SLOTS)]
        await start(session, pool, [(job, *slot) for job, slot in zip(first, slots, strict=True)])


async def start(session: Session, pool: Pool, started: Sequence[tuple[str, str, int]]) -> None:
    """Sets jobs to running in slots, as claims do."""
    weight = usage.weight(await now(session))
    ids = [job_id for job_id, _, _ in started]
    values = {"state": "running", "assigned_worker_id": None, "assigned_until": None, "attempt": 1}
    await session.execute(
        update(JobRow)
        .where(JobRow.id.in_(ids))
        .values(**values, charged_weight=weight)
        .execution_options(synchronize_session=False)
    )
    projects = dict(
        (
            await session.execute(select(JobRow.id, JobRow.project_id).where(JobRow.id.in_(ids)))
        ).all()
    )
    attempts = [
        {
            "id": (attempt_id := new_id("att")),
            "project_id": projects[job_id],
            "job_id": job_id,
            "number": 1,
            "worker_id": worker_id,
            "slot": slot,
            "boot_id": "boot-1",
            "token_hash": attempt_id,
            "state": "running",
            "ran_with": {},
            "lease_until": await now(session),
        }
        for job_id, worker_id, slot in started
    ]
    await _insert(session, AttemptRow, attempts)
    pool.live += started


async def end(session: Session, pool: Pool, number: int) -> dict[str, list[int]]:
    """Ends live attempts drawn at random; returns the free slots of each worker."""
    free: dict[str, list[int]] = {}
    ended = []
    for _ in range(number):
        job_id, worker_id, slot = pool.live.pop(pool.rng.randrange(len(pool.live)))
        free.setdefault(worker_id, []).append(slot)
        ended.append(job_id)
    done = {"state": "succeeded", "charged_weight": None}
    await session.execute(
        update(JobRow)
        .where(JobRow.id.in_(ended))
        .values(**done)
        .execution_options(synchronize_session=False)
    )
    await session.execute(
        update(AttemptRow)
        .where(AttemptRow.job_id.in_(ended))
        .values(state="ended")
        .execution_options(synchronize_session=False)
    )
    return free


class Cost(NamedTuple):
    """Seconds of a decision."""

    decided: float
    computed: float
    """Processor time of this process in the decision: without the database and other programs."""
    wrote: float


async def decide(pool: Pool, equipped: EquippedWorkers, freed: int) -> Cost:
    """Frees slots and assigns them; returns the cost of that."""
    async with pool.database.write() as session:
        free = await end(session, pool, freed)
    begin, began = time.perf_counter(), time.process_time()
    async with pool.database.read() as session:
        decisions = await dispatch_plan.decide(session, equipped)
    decided, computed = time.perf_counter(), time.process_time() - began
    async with pool.database.write() as session:
        assigned = await dispatch_plan.assign(session, decisions, 30)
    written = time.perf_counter()
    assert len(assigned) == freed, f"{len(assigned)} of {freed} slots were assigned"
    async with pool.database.write() as session:
        targets = (
            await session.execute(
                select(JobRow.id, JobRow.assigned_worker_id).where(
                    JobRow.id.in_([one.job_id for one in assigned])
                )
            )
        ).all()
        started = [(job_id, worker_id, free[worker_id].pop()) for job_id, worker_id in targets]
        await start(session, pool, started)
    return Cost(decided - begin, computed, written - decided)


async def _insert(session: Session, model: Any, rows: Sequence[dict[str, Any]]) -> None:
    for first in range(0, len(rows), _ROWS):
        await session.execute(insert(model), rows[first : first + _ROWS])


async def measure(url: str, jobs: int, decisions: int) -> tuple[bool, list[Cost]]:
    """Prints the costs with a queue of some length.

    Returns:
        Whether they are within the bounds, and the cost of each decision on one slot.
    """
    upgrade(url)
    database = Database(url)
    pool = await build(database, jobs)
    # What the program made before is not part of the dispatcher, and need not be looked through.
    gc.collect()
    gc.freeze()
    equipped = EquippedWorkers()
    for _ in range(10):
        await decide(pool, equipped, 1)
    singles = [await decide(pool, equipped, 1) for _ in range(decisions)]
    size = min(BATCH, jobs // 4)
    batches = [await decide(pool, equipped, size) for _ in range(3)]
    await database.dispose()
    milliseconds = [1e3 * one.decided for one in singles]
    good = [
        show(f"{jobs:,} queued: decision", milliseconds, "ms", MEDIAN_BOUND_MS),
        show(f"{jobs:,} queued: decision", milliseconds, "ms", P99_BOUND_MS, 0.99),
    ]
    show(f"{jobs:,} queued: computed by it", [1e3 * one.computed for one in singles], "ms")
    show(f"{jobs:,} queued: assignment written", [1e3 * one.wrote for one in singles], "ms")
    rates = [size / (one.decided + one.wrote) for one in batches]
    verdict = "ok" if min(rates) >= ASSIGNMENTS_BOUND else f"UNDER {ASSIGNMENTS_BOUND:g}"
    print(
        f"{jobs:,} queued: {size} slots at once: {', '.join(f'{rate:,.0f}' for rate in rates)} "
        f"committed assignments a second  {verdict}"
    )
    return all(good) and min(rates) >= ASSIGNMENTS_BOUND, singles


async def run(kind: str, lengths: Sequence[int], decisions: int, plot: Path | None) -> bool:
    """Measures queues of some lengths, each in a database of its own."""
    print(describe_machine())
    good, costs = [], []
    for jobs in lengths:
        with database_url(kind) as url:
            is_good, singles = await measure(url, jobs, decisions)
        good.append(is_good)
        costs.append(singles)
    if plot is not None:
        lines = {
            "median": [_quantile(one, 0.5) for one in costs],
            "99 %": [_quantile(one, 0.99) for one in costs],
        }
        write_plot(plot, "Milliseconds of a decision by number of queued jobs", lengths, lines)
    return all(good)


def _quantile(costs: Sequence[Cost], at: float) -> float:
    return 1e3 * find_quantile([cost.decided for cost in costs], at)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="postgresql")
    parser.add_argument("--jobs", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--decisions", type=int, default=200)
    parser.add_argument("--plot", type=Path, help="SVG file to write")
    chosen = parser.parse_args()
    is_good = asyncio.run(run(chosen.database, chosen.jobs, chosen.decisions, chosen.plot))
    raise SystemExit(not is_good)
