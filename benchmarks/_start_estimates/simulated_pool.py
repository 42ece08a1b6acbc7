"""A pool in a database whose jobs hold slots for given times, by a clock that is moved.

Submissions, decisions, claims and ends are those of the server. Nothing trains.
"""

import heapq
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import select

from app.db.models import JobRow, MembershipRow, ProjectRow, UserRow
from app.db.models.pools import PoolRow, ProjectPoolRow
from app.domain.principal import Principal
from app.domain.queue.decision import Assignment
from app.services.attempts import claims
from app.services.jobs import dispatch_plan
from app.services.queue.equipped_workers import EquippedWorkers
from benchmarks._start_estimates.record import TRAININGS
from palestra.contract.states import Cause, JobState, Outcome
from palestra.contract.work_order import Claim
from tests.support.server_fixture import (
    ALL,
    World,
    advance_clock,
    make_catalogue,
    make_definition,
    make_principal,
)

POOL: Final = "default"
SCALE: Final = 1_000.0
"""Factor of recorded seconds, so that the time that the program itself takes hardly counts."""


@dataclass
class SimulatedPool:
    """People, workers, and jobs with runtimes that the server does not know.

    Attributes:
        world: The server's services on a database.
        rng: Source of all choices.
        people: Callers that submit.
    """

    world: World
    rng: random.Random
    people: list[Principal] = field(default_factory=list)
    workers: list[str] = field(default_factory=list)
    free: dict[str, list[int]] = field(default_factory=dict)
    """Free slots by worker."""
    runtimes: dict[str, float] = field(default_factory=dict)
    """Seconds by job ID."""
    _ends: list[tuple[float, str, str, str, tuple[int, ...]]] = field(default_factory=list)
    """Time, job, attempt, worker and slots of each live attempt: a heap."""
    _equipped: EquippedWorkers = field(default_factory=EquippedWorkers)
    _clock: float = 0.0
    _next_seed: int = 0

    async def open(
        self, *, people: int, projects: int, workers: int, slots: int, gpus: int = 0
    ) -> None:
        """Makes people in projects with different shares, and workers.

        With GPUs, a job takes as many slots of a worker as have its GPUs.
        """
        async with self.world.database.write() as session:
            pool = await session.scalar(select(PoolRow).where(PoolRow.name == POOL))
            assert pool is not None
            rows = [
                ProjectRow(id=f"prj_{number}", slug=f"project-{number}", name=f"project {number}")
                for number in range(projects)
            ]
            users = [UserRow(id=f"usr_{one}", name=f"person-{one}") for one in range(people)]
            session.add_all([*rows, *users])
            await session.flush()
            for number, row in enumerate(rows):
                share = 1.0 + number
                session.add(ProjectPoolRow(project_id=row.id, pool_id=pool.id, share=share))
            for number, user in enumerate(users):
                row = rows[number % projects]
                session.add(MembershipRow(project_id=row.id, user_id=user.id, role="maintainer"))
                self.people.append(make_principal(row, user, ALL))
        agents = ("a2c", "sac", "td3")
        catalogue = make_catalogue()
        catalogue["agents"] += [
            {"name": name, "action_spaces": ["discrete", "box"]} for name in agents
        ]
        offered = [{"index": index, "name": "g", "memory_mib": 1} for index in range(gpus)]
        for number in range(workers):
            registered = await self.world.register(
                name=f"w{number}",
                slots=slots,
                catalogue=catalogue,
                host=f"host-{number}",
                gpus=offered,
                takes_several_slots=gpus > 0,
            )
            self.workers.append(registered.worker_id)
            self.free[registered.worker_id] = list(range(slots))

    async def submit(
        self, name: str, runtimes: Sequence[float], *, gpus: int = 0, **options: Any
    ) -> list[str]:
        """Submits jobs of a recorded training by one person; returns their IDs."""
        environment, agent, env_steps = TRAININGS[name]
        document = {
            **make_definition(),
            "name": name.replace(" ", "-"),
            "env": {"id": environment},
            "agent": agent,
            "loop": {"env_steps": env_steps},
        }
        by = self.rng.choice(self.people)
        seeds = range(self._next_seed, self._next_seed + len(runtimes))
        self._next_seed += len(runtimes)
        resources = {"pack": "off", "gpus": gpus}
        await self.world.submit(document, by=by, seeds=list(seeds), resources=resources, **options)
        async with self.world.database.read() as session:
            query = select(JobRow.id).where(JobRow.state == JobState.QUEUED.value)
            found = (await session.scalars(query.order_by(JobRow.id))).all()
        new = [job_id for job_id in found if job_id not in self.runtimes]
        assert len(new) == len(runtimes)
        self.runtimes |= dict(zip(new, runtimes, strict=True))
        return new

    async def start_next(self) -> int:
        """Assigns the free slots and starts the assigned jobs; returns how many."""
        for worker_id in self.workers:
            await self.world.send_heartbeat(worker_id)
        database = self.world.database
        async with database.read() as session:
            decisions = await dispatch_plan.decide(session, self._equipped)
        async with database.write() as session:
            await dispatch_plan.assign(session, decisions, 30)
        started = 0
        for decided in decisions:
            for one in decided.made.decision.assignments:
                await self._start(one)
                started += 1
        return started

    async def _start(self, assigned: Assignment) -> None:
        job_id, worker_id = assigned.job.id, assigned.worker_id
        slots = tuple(sorted(self.free[worker_id].pop() for _ in range(assigned.slots)))
        body = Claim(
            job_id=job_id,
            expected_attempt=assigned.job.attempt + 1,
            worker_id=worker_id,
            slot=slots[0],
            further_slots=slots[1:],
        )
        async with self.world.database.write() as session:
            answer = await claims.claim(
                session, self.world.own[worker_id], body, self.world.settings
            )
        attempt_id = answer.work_order.attempt_id
        await self.world.renew(attempt_id)
        end = self._clock + self.runtimes[job_id]
        heapq.heappush(self._ends, (end, job_id, attempt_id, worker_id, slots))

    async def end_first(self) -> None:
        """Moves the clock to the next end of an attempt, and ends it."""
        end, _, attempt_id, worker_id, slots = heapq.heappop(self._ends)
        advance_clock(end - self._clock)
        self._clock = end
        await self.world.release(attempt_id, Outcome.SUCCEEDED, Cause.BUDGET)
        self.free[worker_id] += slots

    @property
    def is_idle(self) -> bool:
        """Whether no attempt is live."""
        return not self._ends

    async def finish(self) -> None:
        """Runs all that waits."""
        while await self.start_next() or not self.is_idle:
            if not self.is_idle:
                await self.end_first()

    async def list_waiting(self) -> list[str]:
        """Returns the IDs of the queued jobs."""
        async with self.world.database.read() as session:
            query = select(JobRow.id).where(JobRow.state == JobState.QUEUED.value)
            return list((await session.scalars(query.order_by(JobRow.id))).all())


def divide(
    recorded: Mapping[str, Sequence[float]], rng: random.Random
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Returns two disjoint halves of the recorded runtimes of each training, scaled."""
    seen, unseen = {}, {}
    for name, seconds in recorded.items():
        shuffled = [SCALE * one for one in rng.sample(list(seconds), len(seconds))]
        half = len(shuffled) // 2
        seen[name], unseen[name] = shuffled[:half], shuffled[half:]
    return seen, unseen
