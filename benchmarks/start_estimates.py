"""Whether estimates of starts and explanations of waiting jobs are right, in simulated pools.

Runtimes are those of real short trainings (`benchmarks/_start_estimates/runtimes.json`, recorded by
`python -m benchmarks._start_estimates.record` on a machine with other work), times 1,000: 20 for
each of eight definitions. Half of them are those of jobs that have ended, from which the estimator
learns, and the other half, which it has not seen, is what live and waiting jobs really take. Two of
the definitions have no ended jobs: their runtimes are estimated from those with the same agent and
environment.

Estimates: pools with queued and live jobs are drawn; each start is estimated once, and compared
with the start that the unseen runtimes give. Nobody submits further jobs meanwhile.

Explanations: a server on a database works off a queue by a clock that is moved. Of sampled waiting
jobs, what the explanation names is removed in a transaction that is undone, and the next decision
has to start the job. The server's first estimates are compared with the starts as well.

    python -m benchmarks.start_estimates [--database postgresql | sqlite] [--pools 40] [--seed 1]
"""

import argparse
import asyncio
import json
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sqlalchemy import update

from app.daemons.start_estimator import StartEstimator
from app.db.clock import SKEW, db_now
from app.db.engine import Database
from app.db.migrate import upgrade
from app.db.models import JobRow
from app.db.repositories import start_estimates as rows
from app.domain.queue.start_estimates import ComparedStart, measure_accuracy
from app.services.queue import start_forecasts
from app.services.queue.pool_queue import PoolQueue
from benchmarks._report import describe_machine, show
from benchmarks._start_estimates.blockers import remove_blockers
from benchmarks._start_estimates.drawn_pools import compare_pool
from benchmarks._start_estimates.simulated_pool import POOL, SimulatedPool, divide
from benchmarks.audit_log import database_url
from tests.support.server_fixture import make_world

RECORDED: Final = Path(__file__).with_name("_start_estimates") / "runtimes.json"
WITHOUT_HISTORY: Final = frozenset({"ppo 16k", "dqn 6k"})
JOBS: Final = 40
"""Jobs that wait in the database."""
SAMPLES: Final = 6
"""Waiting jobs whose blockers are removed at each of some moments."""
COVERAGE: Final = (0.7, 0.9)
ROUND_BOUND_MS: Final = 5_000.0


@dataclass
class Found:
    """What the sampled explanations showed."""

    reasons: Counter[str] = field(default_factory=Counter)
    explained: int = 0
    wrong: list[str] = field(default_factory=list)


async def explain_jobs(url: str, seed: int) -> tuple[Found, Sequence[ComparedStart]]:
    """Works off a queue in a database; returns what was found, and the estimates made before."""
    upgrade(url)
    database, found = Database(url), Found()
    rng = random.Random(seed)
    pool = SimulatedPool(await make_world(database), rng)
    await pool.open(people=8, projects=3, workers=2, slots=4)
    seen, unseen = divide(json.loads(RECORDED.read_text()), rng)
    for name, runtimes in seen.items():
        if name not in WITHOUT_HISTORY:
            await pool.submit(name, runtimes[:5])
    await pool.finish()
    await _submit_some(pool, unseen, JOBS)
    await pool.start_next()
    estimator = StartEstimator(database, period=0.0)
    await estimator.tick()
    await _add_held_jobs(pool)
    while not pool.is_idle:
        await _run_some(pool, 6)
        await _remove_some(pool, database, found)
    await estimator.tick()
    async with database.read() as session:
        compared = await rows.list_compared(session, POOL, 10_000)
    await database.dispose()
    return found, compared


async def _submit_some(
    pool: SimulatedPool, unseen: dict[str, list[float]], number: int, *, most: int = 6
) -> None:
    """Submits so many jobs with unseen runtimes, in experiments of at most `most` seeds."""
    while number > 0:
        name = pool.rng.choice(sorted(unseen))
        count = min(number, pool.rng.randint(1, most))
        await pool.submit(name, pool.rng.choices(unseen[name], k=count))
        number -= count


async def _add_held_jobs(pool: SimulatedPool) -> None:
    """Submits jobs that wait for other things than their turn."""
    interactive = {"priority_class": "interactive", "limits": {"wall_seconds": 1_800}}
    await pool.submit("td3 pendulum", [600.0, 600.0], **interactive)
    (large,) = await pool.submit("a2c 6k", [600.0])
    (delayed,) = await pool.submit("ppo 8k", [600.0])
    async with pool.world.database.write() as session:
        await session.execute(update(JobRow).where(JobRow.id == large).values(gpus=2))
        delay = {"not_before": db_now(3e4)}
        await session.execute(update(JobRow).where(JobRow.id == delayed).values(**delay))


async def _run_some(pool: SimulatedPool, ends: int) -> None:
    for _ in range(ends):
        if pool.is_idle:
            return
        await pool.end_first()
        await pool.start_next()


async def _remove_some(pool: SimulatedPool, database: Database, found: Found) -> None:
    waiting = await pool.list_waiting()
    callers = {one.user_id: one for one in pool.people}
    for job_id in pool.rng.sample(waiting, min(SAMPLES, len(waiting))):
        async with database.read() as session:
            by = (await session.get_one(JobRow, job_id)).created_by
        reasons, has_started = await remove_blockers(database, callers[by], job_id)
        found.explained += 1
        found.reasons.update(reasons)
        if not has_started:
            found.wrong.append(f"{job_id}: {', '.join(reasons)}")


async def measure_cost(url: str) -> list[float]:
    """Returns the milliseconds of rounds of the estimator with 1,000 jobs of 40 people."""
    upgrade(url)
    database = Database(url)
    pool = SimulatedPool(await make_world(database), random.Random(0))
    await pool.open(people=40, projects=5, workers=8, slots=4)
    seen, unseen = divide(json.loads(RECORDED.read_text()), pool.rng)
    for name, runtimes in seen.items():
        await pool.submit(name, runtimes[:2])
    await pool.finish()
    await _submit_some(pool, unseen, 1_032, most=40)
    await pool.start_next()
    milliseconds = []
    for _ in range(5):
        begin = time.perf_counter()
        async with database.read() as session:
            state, order = await PoolQueue(session, POOL).read_first_jobs(1_000)
            simulated = await start_forecasts.load_pool(session, POOL, state)
        read = time.perf_counter()
        made = await start_forecasts.forecast(simulated, [job.id for job in order])
        simulated_at = time.perf_counter()
        async with database.write() as session:
            await start_forecasts.store(session, POOL, made)
        end = time.perf_counter()
        milliseconds.append(1e3 * (end - begin))
        print(
            f"  {len(order)} jobs, 32 slots: read {read - begin:.2f} s, simulated "
            f"{simulated_at - read:.2f} s, stored {end - simulated_at:.2f} s"
        )
    await database.dispose()
    return milliseconds


def report_explanations(found: Found) -> bool:
    """Prints how many explanations were right; returns whether all were."""
    print(
        f"explanations: {found.explained - len(found.wrong)} of {found.explained} sampled jobs "
        "started at the decision after the removal of what was stated"
    )
    print(f"  stated: {', '.join(f'{name} {n}' for name, n in found.reasons.most_common())}")
    for line in found.wrong:
        print(f"  WRONG {line}")
    return not found.wrong


def report_starts(what: str, starts: Sequence[ComparedStart], *, is_bounded: bool) -> bool:
    """Prints error and coverage; returns whether the coverage is within the bounds."""
    accuracy = measure_accuracy(starts)
    if accuracy.coverage is None or accuracy.median_error_seconds is None:
        print(f"{what}: no job waited")
        return not is_bounded
    wait = statistics.median((one.started_at - one.made_at).total_seconds() for one in starts)
    relative = statistics.median(
        abs((one.started_at - one.median) / (one.started_at - one.made_at))
        for one in starts
        if one.started_at > one.made_at
    )
    low, high = COVERAGE
    is_good = low <= accuracy.coverage <= high
    verdict = "" if not is_bounded else "  ok" if is_good else f"  NOT {low:.0%} to {high:.0%}"
    print(
        f"{what}: {accuracy.starts} starts, coverage of the 80 % interval "
        f"{accuracy.coverage:.1%}{verdict}; median error {accuracy.median_error_seconds:.0f} s "
        f"({relative:.1%} of the wait) at a median wait of {wait:.0f} s"
    )
    return is_good or not is_bounded


def run(kind: str, pools: int, seed: int) -> bool:
    """Measures estimates, explanations and cost; returns whether all are within their bounds."""
    print(describe_machine())
    recorded = json.loads(RECORDED.read_text())
    starts: list[ComparedStart] = []
    for number in range(pools):
        starts += compare_pool(recorded, seed + number, WITHOUT_HISTORY)
    is_good = report_starts(f"estimates in {pools} pools", starts, is_bounded=True)
    with database_url(kind) as url:
        found, compared = asyncio.run(explain_jobs(url, seed))
    SKEW.seconds = 0.0
    is_good = report_explanations(found) and is_good
    report_starts("estimates of one server", compared, is_bounded=False)
    with database_url(kind) as url:
        costs = asyncio.run(measure_cost(url))
    return show("a round of the estimator, 1,000 jobs", costs, "ms", ROUND_BOUND_MS) and is_good


def main() -> int:
    """Reads the arguments; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="postgresql")
    parser.add_argument("--pools", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    values = parser.parse_args()
    return 0 if run(values.database, values.pools, values.seed) else 1


if __name__ == "__main__":
    sys.exit(main())
