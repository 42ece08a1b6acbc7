"""Pools that are drawn at random, with the starts that were estimated and those that come true."""

import math
import random
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import timedelta
from typing import Final

from app.domain.queue import usage
from app.domain.queue.decision import PoolState, WorkerOffer
from app.domain.queue.runtimes import EndedJob, JobKind, RuntimeModel, RuntimeModels
from app.domain.queue.start_estimates import ComparedStart
from app.domain.queue.start_order import Group, Heads, QueuedJob, Shares, UsageAccount
from app.domain.queue.start_simulation import (
    JobRuntime,
    LiveJob,
    Simulated,
    StartInterval,
    estimate_starts,
)
from app.services.queue.start_forecasts import DRAWS
from benchmarks._start_estimates.record import TRAININGS
from benchmarks._start_estimates.simulated_pool import divide
from palestra.contract.names import PriorityClass

NOW: Final = usage.LANDMARK + timedelta(weeks=46)
WORKERS: Final = 3
SLOTS: Final = 4
JOBS: Final = 48
PEOPLE: Final = 8
PROJECTS: Final = 3


def compare_pool(
    recorded: Mapping[str, Sequence[float]], seed: int, without_history: AbstractSet[str]
) -> list[ComparedStart]:
    """Returns the estimated and the actual starts in a pool.

    Args:
        recorded: Recorded seconds by name of a training.
        seed: Seed of all that is drawn.
        without_history: Names of trainings of which no job has ended.
    """
    rng = random.Random(seed)
    seen, unseen = divide(recorded, rng)
    models = RuntimeModels(
        [
            EndedJob(_kind(name), seconds, "succeeded")
            for name, runtimes in seen.items()
            if name not in without_history
            for seconds in runtimes
        ]
    )
    # Each unseen runtime is that of one job: two jobs with the same one would not be independent.
    live = [_draw_live(rng, number, unseen) for number in range(WORKERS * SLOTS)]
    state, names = _draw_state(rng, unseen)
    actual = {job_id: unseen[name].pop() for job_id, name in names.items()}
    estimated = estimate_starts(
        Simulated(
            state=state,
            live=[_live(one, JobRuntime(model=models.find(_kind(one[1])), elapsed=one[2]))
                  for one in live],
            runtimes={
                job_id: JobRuntime(model=models.find(_kind(name)))
                for job_id, name in names.items()
            },
        ),
        names,
        draws=DRAWS,
        seed=seed,
    )  # fmt: skip
    true = estimate_starts(
        Simulated(
            state=state,
            live=[_live(one, JobRuntime(model=_exact(one[3]), elapsed=one[2])) for one in live],
            runtimes={job_id: JobRuntime(model=_exact(one)) for job_id, one in actual.items()},
        ),
        names,
        draws=1,
        seed=seed,
    )
    return [_compare(estimated[job_id], true[job_id].median) for job_id in names]


def _compare(estimated: StartInterval, started: float) -> ComparedStart:
    times = (0.0, estimated.earliest, estimated.median, estimated.latest, started)
    return ComparedStart(*(NOW + timedelta(seconds=one) for one in times))


def _kind(name: str) -> JobKind:
    environment, agent, env_steps = TRAININGS[name]
    return JobKind(name, agent["name"], environment, "train", 1, "env_steps", float(env_steps))


def _exact(seconds: float) -> RuntimeModel:
    return RuntimeModel(
        mean=math.log(seconds),
        variance=1e-12,
        degrees=1e6,
        observations=1_000_000,
        failed=(),
        failing=0.0,
    )


def _draw_state(
    rng: random.Random, unseen: Mapping[str, Sequence[float]]
) -> tuple[PoolState, dict[str, str]]:
    """Returns a pool without free slots, and the training of each of its queued jobs."""
    groups: dict[Group, list[QueuedJob]] = {}
    names: dict[str, str] = {}
    left = {name: len(runtimes) for name, runtimes in sorted(unseen.items())}
    while len(names) < JOBS and any(left.values()):
        group, name = _draw_group(rng), rng.choice([one for one in left if left[one]])
        number = min(rng.randint(1, 6), JOBS - len(names), left[name])
        left[name] -= number
        for seed in range(number):
            job_id = f"job {len(names):03}"
            names[job_id] = name
            job = QueuedJob(
                id=job_id,
                attempt=0,
                group=group,
                priority=0,
                seed_index=seed,
                queued_at=NOW - timedelta(seconds=JOBS - len(names)),
                gpus=0,
                version=1,
                requirements="",
                experiment_id=name,
            )
            groups.setdefault(group, []).append(job)
    heads = {
        group: Heads(jobs=sorted(jobs, key=lambda job: job.own_order), is_complete=True)
        for group, jobs in groups.items()
    }
    accounts = {
        UsageAccount(f"project {number % PROJECTS}", f"person {number}"): rng.expovariate(1e-4)
        * usage.weight(NOW)
        for number in range(PEOPLE)
    }
    shares = {f"project {number}": 1.0 + number for number in range(PROJECTS)}
    workers = [
        WorkerOffer(worker_id=f"w{one}", free_slots=0, gpus=0, versions=frozenset({1}))
        for one in range(WORKERS)
    ]
    state = PoolState(
        shares=Shares(now=NOW, shares=shares, usage=accounts), heads=heads, workers=workers
    )
    return state, names


def _draw_group(rng: random.Random) -> Group:
    number = rng.randrange(PEOPLE)
    return Group(PriorityClass.NORMAL, f"project {number % PROJECTS}", f"person {number}")


_Live = tuple[int, str, float, float, Group]
"""Number, training, elapsed and actual seconds, and group of a live job."""


def _draw_live(rng: random.Random, number: int, unseen: Mapping[str, list[float]]) -> _Live:
    """Draws a job that is live at some moment, and removes it: longer ones are met more often."""
    every = [(name, seconds) for name, runtimes in unseen.items() for seconds in runtimes]
    ((name, seconds),) = rng.choices(every, weights=[seconds for _, seconds in every])
    unseen[name].remove(seconds)
    return number, name, rng.uniform(0, seconds), seconds, _draw_group(rng)


def _live(drawn: _Live, runtime: JobRuntime) -> LiveJob:
    number, name, _, _, group = drawn
    job = QueuedJob(
        id=f"live {number}",
        attempt=1,
        group=group,
        priority=0,
        seed_index=0,
        queued_at=NOW,
        gpus=0,
        version=1,
        requirements="",
        experiment_id=name,
    )
    return LiveJob(
        worker_id=f"w{number % WORKERS}",
        group=group,
        experiment=job.experiment,
        devices=1,
        runtime=runtime,
    )
