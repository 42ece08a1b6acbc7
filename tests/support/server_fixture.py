"""A small project for tests of the server: users, a worker, and helpers that call the services."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select, update

from app.db.clock import SKEW, db_now, now
from app.db.engine import Database
from app.db.models import JobRow, MembershipRow, ProjectRow, UserRow
from app.db.repositories import attempts as attempt_rows
from app.db.repositories import pools as pool_rows
from app.domain.principal import Membership, Principal
from app.domain.queue import usage
from app.services import pools
from app.services.access import principals
from app.services.attempts import claims, leases
from app.services.experiments.submission import submit as submit_definition
from app.services.jobs import job_creation, jobs, retries
from app.services.runs import runs
from app.services.workers import enrolment_tokens, heartbeats, workers
from app.services.workers.broker_users import BrokerUsers
from app.settings import Settings
from palestra.contract.job_options import JobRequest, RetryRequest, Submission
from palestra.contract.names import Schedule, Scope, new_id
from palestra.contract.permissions import Role
from palestra.contract.pools import EnrolmentTokenRequest
from palestra.contract.registration import Registration, RegistrationAnswer, WorkerHeartbeat
from palestra.contract.resources import ExperimentDetail, JobView, RunDetail
from palestra.contract.states import Cause, JobState, Outcome
from palestra.contract.work_order import (
    AttemptReport,
    Claim,
    ClaimAnswer,
    Release,
    Renewal,
    RenewalAnswer,
)

ALL = frozenset(Scope) - {Scope.WORKER}


def make_definition(**changes: Any) -> dict[str, Any]:
    """Returns a small valid definition as JSON, with some top-level members replaced."""
    return {
        "kind": "rl",
        "name": "CartPole DQN",
        "env": {"id": "CartPole-v1"},
        "agent": {"name": "dqn"},
        "loop": {"env_steps": 10_000},
        **changes,
    }


def make_catalogue_with_walk() -> dict[str, Any]:
    """Returns a catalogue with an environment of a distribution.

    Its worker also imports a module.
    """
    walk = {"id": "tiny/Walk-v0", "action_space": {"kind": "discrete", "n": 2}, "code": WALK_CODE}
    return {
        **make_catalogue(),
        "environments": [*make_catalogue()["environments"], walk],
        "imports": ["loose"],
    }


def make_supervised_definition() -> dict[str, Any]:
    """Returns a small valid definition of supervised training as JSON.

    Its parts are in `make_catalogue`.
    """
    named = {
        member: {"name": name}
        for member, name in (
            ("estimator", "mlp"),
            ("train_input", "rows"),
            ("evaluation_input", "rows"),
        )
    }
    return {"kind": "supervised", "name": "s", "loop": {"updates": 50}, **named}


def make_submission(document: dict[str, Any] | None = None, **options: Any) -> Submission:
    """Returns a submission of `document`, by default of the small definition, with job options."""
    return Submission.model_validate_json(
        json.dumps({"definition": document or make_definition(), "options": options})
    )


TINY_CODE = {
    "kind": "entrypoint",
    "distribution": "tiny-agents",
    "version": "1.2.0",
    "digest": "7" * 64,
}
WALK_CODE = {
    "kind": "distribution",
    "distribution": "tiny-envs",
    "version": "2.0",
    "digest": "5" * 64,
}
TINY_SCHEMA = {
    "type": "object",
    "properties": {
        "rate": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 0.5},
        "table": {"type": "array", "items": {"$ref": "#/$defs/cell"}},
    },
    "$defs": {"cell": {"type": "integer"}},
    "additionalProperties": False,
}


def make_catalogue() -> dict[str, Any]:
    """Returns a catalogue with both kinds of agents, parts of supervised training and environments.

    The agents are two built-in ones and one of a distribution.
    """
    part = {"name": "tiny", "parameters_schema": TINY_SCHEMA, "code": TINY_CODE}
    return {
        "agents": [
            {"name": "dqn", "action_spaces": ["discrete"]},
            {"name": "ppo", "action_spaces": ["discrete", "box"]},
            {**part, "action_spaces": ["discrete"]},
        ],
        "model_functions": [{"name": "mlp"}, part],
        "input_functions": [
            {
                "name": "rows",
                "parameters_schema": {
                    "properties": {"batch_size": {"type": "integer", "default": 32}}
                },
            }
        ],
        "environments": [
            {
                "id": "CartPole-v1",
                "action_space": {"kind": "discrete", "n": 2},
                "max_episode_steps": 500,
            },
            {
                "id": "Pendulum-v1",
                "action_space": {"kind": "box", "shape": [1]},
                "max_episode_steps": 200,
            },
        ],
        "schedules": list(Schedule),
    }


def registration(**changes: Any) -> Registration:
    """Returns the registration of a worker with four slots."""
    document = {
        "name": "w1",
        "pool": "default",
        "host": "host-1",
        "boot_id": "boot-1",
        "pid": 100,
        "slots": 4,
        "work_order_versions": [1, 2],
        "version": "0.1.0",
        "catalogue": make_catalogue(),
    }
    return Registration.model_validate_json(json.dumps({**document, **changes}))


@dataclass
class World:
    """A project with an admin, a second user and the workers that were registered.

    Each method is one transaction, as a request is.
    """

    database: Database
    project_id: str
    admin: Principal
    other: Principal
    settings: Settings = field(default_factory=Settings)
    own: dict[str, Principal] = field(default_factory=dict)
    """Workers as authenticated callers, by worker ID."""
    enrolments: dict[str, Principal] = field(default_factory=dict)
    """Enrolment tokens as authenticated callers, by pool."""
    broker_users: BrokerUsers = field(default_factory=lambda: BrokerUsers(Settings()))
    """Grants workers access to the broker, which does not run unless a test starts one."""

    async def submit(
        self, document: dict[str, Any] | None = None, *, by: Principal | None = None, **options: Any
    ) -> tuple[ExperimentDetail, bool]:
        async with self.database.write() as session:
            return await submit_definition(
                session, by or self.admin, make_submission(document, **options)
            )

    async def submit_one_job(self, **options: Any) -> JobView:
        """Submits the small definition with one seed that has no run yet; returns the new job."""
        before = await self._list_job_ids()
        await self.submit(**options)
        (job_id,) = await self._list_job_ids() - before
        return await self.job(job_id)

    async def _list_job_ids(self) -> set[str]:
        async with self.database.read() as session:
            return set(await session.scalars(select(JobRow.id)))

    async def list_jobs(self, *, state: JobState | None = None, **wanted: Any) -> Sequence[JobView]:
        """Returns jobs, the oldest first."""
        states = () if state is None else (state,)
        async with self.database.read() as session:
            request = jobs.PageRequest(limit=500, sort="created_at")
            chosen = jobs.JobFilter(states=states, **wanted)
            return (await jobs.list_jobs(session, self.admin, chosen, request)).items

    async def job(self, job_id: str) -> JobView:
        async with self.database.read() as session:
            return await jobs.get(session, self.admin, job_id)

    async def run(self, run_id: str) -> RunDetail:
        async with self.database.read() as session:
            return await runs.get(session, self.admin, run_id)

    async def add_job(self, run_id: str, schedule: Schedule, **request: Any) -> JobView:
        """Submits a schedule on a run."""
        body = JobRequest.model_validate_json(json.dumps({"schedule": schedule, **request}))
        async with self.database.write() as session:
            return await job_creation.submit(session, self.admin, run_id, body)

    async def pause(self, job_id: str) -> JobView:
        async with self.database.write() as session:
            return await jobs.pause(session, self.admin, job_id)

    async def resume(self, job_id: str, *, allow_code_change: bool = False) -> JobView:
        async with self.database.write() as session:
            return await jobs.resume(
                session, self.admin, job_id, allow_code_change=allow_code_change
            )

    async def retry(self, run_id: str, **request: Any) -> JobView:
        """Submits a retry of a failed run."""
        async with self.database.write() as session:
            return await retries.retry(session, self.admin, run_id, RetryRequest(**request))

    async def cancel(self, job_id: str) -> JobView:
        async with self.database.write() as session:
            view = await jobs.cancel(session, self.admin, job_id)
            assert isinstance(view, JobView)
            return view

    async def register(self, *, by: Principal | None = None, **changes: Any) -> RegistrationAnswer:
        """Registers a worker as `by`, or by its own secret if it has one."""
        body = registration(**changes)
        pool = body.pool or pools.DEFAULT
        await self.make_pool(pool)
        own = (own for own in self.own.values() if own.user == f"worker {body.name}")
        caller = by or next(own, None) or await self.make_enrolment(pool)
        async with self.database.write() as session:
            answer = await workers.register(session, caller, body, self.settings, self.broker_users)
        if answer.secret is not None:
            self.own[answer.worker_id] = await self._authenticate(answer.secret)
        return answer

    async def make_enrolment(
        self, pool: str = pools.DEFAULT, user_id: str | None = None
    ) -> Principal:
        """Returns an enrolment token of a pool as a caller; the first call makes it.

        Args:
            pool: The pool, which exists.
            user_id: Who makes it; the admin by default.
        """
        if pool not in self.enrolments:
            request = EnrolmentTokenRequest(name="test", expires_in_days=None)
            async with self.database.write() as session:
                token = await enrolment_tokens.issue(
                    session, pool, request, user_id=user_id or self.admin.user_id
                )
            assert token.secret is not None
            self.enrolments[pool] = await self._authenticate(token.secret)
        return self.enrolments[pool]

    async def _authenticate(self, secret: str) -> Principal:
        async with self.database.read() as session:
            principal = await principals.find_by_token(session, secret)
        assert principal is not None
        return principal

    async def make_pool(self, name: str, *, project_id: str | None = None, **values: Any) -> None:
        """Makes a pool if it is missing, and admits a project to it; the first one by default."""
        async with self.database.write() as session:
            await pool_rows.insert(session, {"id": new_id("pol"), "name": name, **values})
            pool = await pool_rows.find_by_name(session, name)
            assert pool is not None
            await pool_rows.admit(session, pool.id, project_id or self.project_id)

    async def send_heartbeat(
        self,
        worker_id: str,
        *,
        dead: Sequence[str] = (),
        live: Sequence[str] | None = None,
        busy: Sequence[int] = (),
    ) -> str:
        """Sends a worker's heartbeat; returns the order.

        Without `live`, the heartbeat lists all of the worker's attempts that are not in `dead`.
        """
        async with self.database.write() as session:
            known = (
                live
                if live is not None
                else [
                    found.id
                    for found in await attempt_rows.list_live_for_workers(session, [worker_id])
                ]
            )
            body = WorkerHeartbeat(
                live_attempts=tuple({*known} - {*dead}),
                dead_attempts=tuple(dead),
                busy_slots=tuple(busy),
            )
            return (
                await heartbeats.record_heartbeat(
                    session, self.own[worker_id], worker_id, body, self.settings
                )
            ).order

    async def claim(
        self,
        job_id: str,
        worker_id: str,
        *,
        attempt: int = 1,
        slot: int = 0,
        further_slots: tuple[int, ...] = (),
    ) -> ClaimAnswer:
        """Assigns a job to a worker and claims it as that worker; returns the claim's answer."""
        body = Claim(
            job_id=job_id,
            expected_attempt=attempt,
            worker_id=worker_id,
            slot=slot,
            further_slots=further_slots,
        )
        await self.assign(job_id, worker_id, slots=1 + len(further_slots))
        caller = self.own.get(worker_id) or await self.make_enrolment()
        async with self.database.write() as session:
            return await claims.claim(session, caller, body, self.settings)

    async def assign(self, job_id: str, worker_id: str, slots: int = 1) -> None:
        """Assigns a queued job to a worker, whether or not it is the next one."""
        statement = update(JobRow).where(JobRow.id == job_id, JobRow.state == "queued")
        values = {
            "assigned_worker_id": worker_id,
            "assigned_until": db_now(30),
            "assigned_slots": slots,
        }
        async with self.database.write() as session:
            await session.execute(
                statement.values(**values, charged_weight=usage.weight(await now(session)))
            )

    async def renew(self, attempt_id: str, **progress: Any) -> RenewalAnswer:
        """Renews the lease of an attempt; returns the answer with the order."""
        async with self.database.write() as session:
            return await leases.renew(session, attempt_id, Renewal(**progress), self.settings)

    async def start(
        self,
        job_id: str,
        worker_id: str,
        *,
        attempt: int = 1,
        slot: int = 0,
        further_slots: tuple[int, ...] = (),
    ) -> ClaimAnswer:
        """Claims a job and renews its lease once, which sets its state to running."""
        claimed = await self.claim(
            job_id, worker_id, attempt=attempt, slot=slot, further_slots=further_slots
        )
        await self.renew(claimed.work_order.attempt_id)
        return claimed

    async def release(
        self, attempt_id: str, outcome: Outcome, cause: Cause, *, last_seq: int = 0, **report: Any
    ) -> None:
        """Releases the lease of an attempt with its outcome and cause."""
        body = Release(
            report=AttemptReport(outcome=outcome, cause=cause, **report), last_seq=last_seq
        )
        async with self.database.write() as session:
            await leases.release(session, attempt_id, body)


async def make_world(
    database: Database, name: str = "default", admin_name: str = "admin", other_name: str = "bea"
) -> World:
    """Creates a project with an administrator and another user."""
    project = ProjectRow(id=new_id("prj"), slug=name, name=name)
    people = [
        UserRow(id=new_id("usr"), name=admin_name, is_admin=True),
        UserRow(id=new_id("usr"), name=other_name),
    ]
    async with database.write() as session:
        session.add_all([project, *people])
        await session.flush()
        session.add_all(
            MembershipRow(project_id=project.id, user_id=user.id, role=Role.MAINTAINER.value)
            for user in people
        )
    admin, other = (make_principal(project, user, ALL) for user in people)
    world = World(database, project.id, admin, other)
    await world.make_pool("default")
    return world


def make_principal(
    project: ProjectRow,
    user: UserRow,
    scopes: frozenset[Scope],
    role: Role = Role.MAINTAINER,
) -> Principal:
    """Returns a user with a role in one project as a caller with some scopes."""
    return Principal(
        user_id=user.id,
        user=user.name,
        via="token",
        scopes=scopes,
        memberships=(
            Membership(project_id=project.id, slug=project.slug, name=project.name, role=role),
        ),
        is_admin=bool(user.is_admin),
    )


def make_token_caller(user_id: str, token_id: str = "tok", *project_ids: str) -> Principal:
    """Returns a caller with a token, who is a member of some projects."""
    memberships = tuple(
        Membership(project_id=project_id, slug=project_id, name=project_id, role=Role.MEMBER)
        for project_id in project_ids
    )
    return Principal(
        user_id=user_id,
        user=user_id,
        via="token",
        scopes=ALL,
        memberships=memberships,
        token_id=token_id,
    )


def advance_clock(seconds: float) -> None:
    """Advances the database's clock, as seen by this process."""
    SKEW.seconds += seconds
