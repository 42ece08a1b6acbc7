"""Runs the whole server in the test's process.

Its database holds users, tokens, runs, and attempts in every state that requests can meet.
"""

import hashlib
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import structlog
from asgi_lifespan import LifespanManager
from fastapi import FastAPI
from sqlalchemy import ColumnElement, FromClause, func, select

from app.api import expensive_reads
from app.api.health import ReadinessCheck
from app.api.turns import Turns
from app.db.engine import Database
from app.db.models import Base, MembershipRow, ProjectRow, RunRow, SnapshotRow, TokenRow, UserRow
from app.domain.principal import Principal
from app.main import create_app
from app.services.access import logins, tokens
from app.services.experiments.submission import submit as submit_definition
from app.services.workers import enrolment_tokens
from app.settings import Settings
from palestra.contract.access import TokenRequest
from palestra.contract.names import Scope, new_id
from palestra.contract.permissions import Role
from palestra.contract.pools import EnrolmentTokenRequest
from palestra.contract.states import Cause, Outcome, SnapshotState
from tests.support.documented_statuses import check_status
from tests.support.records import make_points, make_snapshot
from tests.support.server_fixture import (
    ALL,
    World,
    make_definition,
    make_principal,
    make_submission,
    make_world,
)
from tests.support.waiting import PATIENCE_SECONDS

HOST = "127.0.0.1"
ORIGIN = f"http://{HOST}"
SNAPSHOT_FILE = {
    "name": "weights.safetensors",
    "size": 4,
    "sha256": hashlib.sha256(b"1234").hexdigest(),
}


@dataclass
class AppServer:
    """A running application, its tokens by owner and the IDs that requests may use, by name."""

    app: FastAPI
    world: World
    tokens: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    @property
    def database(self) -> Database:
        return self.app.state.database  # type: ignore[no-any-return]

    @property
    def path_names(self) -> dict[str, str]:
        """Names of objects that exist, by the parameters of paths."""
        return {
            "slug": "default",
            "pool": "default",
            "experiment_id": self.names["experiment"],
            "run_id": self.names["live_run"],
            "job_id": self.names["queued_job"],
            "worker_id": self.names["worker"],
        }

    @property
    def reserved(self) -> Database:
        """The database with the connections of workers, attempts, daemons and `/readyz`."""
        return self.app.state.reserved  # type: ignore[no-any-return]

    def client(self, who: str = "anonymous", **options: Any) -> httpx.AsyncClient:
        """Returns a client that sends the token of `who`, or no token.

        A status that the OpenAPI document does not name fails the test.
        """
        headers = {"Authorization": f"Bearer {self.tokens[who]}"} if who != "anonymous" else {}
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=True)
        return httpx.AsyncClient(
            transport=transport,
            base_url=ORIGIN,
            headers=headers,
            event_hooks={"response": [check_status]},
            **options,
        )

    async def store_artifact(self, name: str, content: str) -> str:
        """Stores an artifact of the live attempt; returns the path of its content."""
        base = f"/api/v1/attempts/{self.names['live_attempt']}/artifacts"
        data = content.encode()
        declaration = {
            "run_id": self.names["live_run"],
            "name": name,
            "kind": "export",
            "size": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        }
        async with self.client("live_attempt") as client:
            made = (await client.post(base, json=declaration)).json()
            headers = {"Content-Type": "application/octet-stream"}
            stored = await client.put(f"{base}/{made['id']}", content=data, headers=headers)
            assert stored.status_code == 200, stored.text
        return f"/api/v1/artifacts/{made['id']}/content"

    async def browser(self) -> tuple[httpx.AsyncClient, str]:
        """Returns a client that is logged in by cookie, and its CSRF token."""
        async with self.database.write() as session:
            code = await logins.make_link(session, self.world.admin.user_id, 3_600)
        client = self.client()
        answer = await client.post(
            "/api/v1/session:redeem", json={"code": code}, headers={"Origin": ORIGIN}
        )
        assert answer.status_code == 201, answer.text
        return client, answer.json()["csrf_token"]

    async def count_rows(self) -> dict[str, int]:
        """Returns the number of rows of each table.

        Entries about refused requests are left out: they are written when the minute is over.
        """
        counts = [
            (
                select(func.count())
                .select_from(table)
                .where(*_list_conditions(table))
                .scalar_subquery()
                .label(table.name)
            )
            for table in Base.metadata.sorted_tables
        ]
        async with self.database.read() as session:
            return dict((await session.execute(select(*counts))).one()._mapping)


def _list_conditions(table: FromClause) -> list[ColumnElement[bool]]:
    return [table.c.action.not_like("%.refuse")] if table.name == "audit" else []


@asynccontextmanager
async def serve(url: str, directory: Path, **settings: Any) -> AsyncIterator[AppServer]:
    """Runs an application on an empty, migrated database, which it fills with sample data.

    Requests are not limited by default: tests send more of them with one token than people do.
    """
    structlog.configure(
        processors=[structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    )
    values = {"data_dir": directory, "database_url": url, "daemons": False}
    app = create_app(Settings(**{**values, "api_requests_per_second": 0, **settings}))
    # On a busy machine many requests of one person take longer than people wait.
    app.state.writes = Turns(1, "too_many_writes", "changes", PATIENCE_SECONDS)
    app.state.expensive_reads = expensive_reads.make_turns(PATIENCE_SECONDS)
    # A second passes with each look at this clock, so that each request checks anew.
    app.state.readiness = ReadinessCheck(clock=itertools.count().__next__)
    async with LifespanManager(
        app, startup_timeout=PATIENCE_SECONDS, shutdown_timeout=PATIENCE_SECONDS
    ):
        world = await make_world(app.state.database)
        served = AppServer(app, world)
        await _make_tokens(served)
        await _make_people(served)
        await _make_other_project(served)
        await _make_attempts(served)
        yield served


async def _make_tokens(served: AppServer) -> None:
    world = served.world
    scopes = {
        "user": "read submit admin",
        "reader": "read",
        "submitter": "submit",
        "admin_only": "admin",
        "expired": "read",
    }
    async with served.database.write() as session:
        for name, granted in scopes.items():
            served.tokens[name] = await _issue_token(
                session, None, world.admin.user_id, name, granted
            )
        revoked = await tokens.issue_token(
            session, None, world.admin.user_id, _request("revoked", "read submit admin")
        )
        served.tokens["revoked"] = revoked.secret or ""
        await tokens.revoke_token(session, world.admin, revoked.id)
        expired = (await session.scalars(select(TokenRow).where(TokenRow.name == "expired"))).one()
        expired.expires_at = expired.created_at
        served.names["token"] = revoked.id
        enrolment = await enrolment_tokens.create(
            session, world.admin, "default", EnrolmentTokenRequest(name="e", expires_in_days=None)
        )
        served.tokens["enrolment"] = enrolment.secret or ""


async def _make_people(served: AppServer) -> None:
    """Creates a user of each role, with a token of all scopes; `administrator` has no project."""
    roles = {
        "viewer": Role.VIEWER,
        "member": Role.MEMBER,
        "maintainer": Role.MAINTAINER,
        "service": Role.MEMBER,
        "disabled": Role.MAINTAINER,
        "administrator": None,
    }
    project_id = served.world.project_id
    async with served.database.write() as session:
        for name, role in roles.items():
            user = UserRow(id=new_id("usr"), name=name, is_admin=role is None)
            user.service_project_id = project_id if name == "service" else None
            session.add(user)
            await session.flush()
            if role is not None:
                membership = {"project_id": project_id, "user_id": user.id, "role": role.value}
                session.add(MembershipRow(**membership))
                await session.flush()
            of_project = project_id if name == "service" else None
            served.tokens[name] = await _issue_token(
                session, of_project, user.id, name, "read submit admin"
            )
            if name == "disabled":
                user.disabled_at = user.created_at


async def _issue_token(
    session: Any, project_id: str | None, user_id: str, name: str, scopes: str
) -> str:
    return (
        await tokens.issue_token(session, project_id, user_id, _request(name, scopes))
    ).secret or ""


def _request(name: str, scopes: str) -> TokenRequest:
    return TokenRequest(name=name, scopes=tuple(Scope(scope) for scope in scopes.split()))


async def _make_other_project(served: AppServer) -> None:
    """Creates a second project; requests for its IDs must be answered like requests for unknown
    IDs.
    """
    project, person = (
        ProjectRow(id=new_id("prj"), slug="elsewhere", name="elsewhere"),
        UserRow(id=new_id("usr"), name="zoe"),
    )
    async with served.database.write() as session:
        session.add_all([project, person])
        await session.flush()
        session.add(MembershipRow(project_id=project.id, user_id=person.id, role="maintainer"))
        await session.flush()
        served.tokens["foreign"] = await _issue_token(
            session, project.id, person.id, "foreign", "read submit admin"
        )
    await served.world.make_pool("elsewhere", project_id=project.id)
    async with served.database.write() as session:
        owner: Principal = make_principal(project, person, ALL)
        submitted = make_submission(make_definition(name="not yours"), pool="elsewhere")
        view, _ = await submit_definition(session, owner, submitted)
        served.names["foreign_experiment"] = view.id
    async with served.client("foreign") as client:
        served.names["foreign_run"] = (await client.get("/api/v1/runs")).json()["items"][0]["id"]
        served.names["foreign_job"] = (await client.get("/api/v1/jobs")).json()["items"][0]["id"]


async def _make_attempts(served: AppServer) -> None:
    world, names = served.world, served.names
    registered = await world.register(slots=16)
    names["worker"], served.tokens["own_worker"] = registered.worker_id, registered.secret or ""
    other = await world.register(name="w2")
    names["other_worker"], served.tokens["other_worker"] = other.worker_id, other.secret or ""
    names["experiment"] = ""
    for slot, state in enumerate(("live", "finished", "lost")):
        job = await world.submit_one_job(seeds=[100 + slot])
        claimed = await world.start(job.id, names["worker"], slot=slot)
        names[f"{state}_job"], names[f"{state}_run"] = job.id, job.run_ids[0]
        names[f"{state}_attempt"], served.tokens[f"{state}_attempt"] = (
            claimed.work_order.attempt_id,
            claimed.token,
        )
        names["experiment"] = job.experiment_id
    await world.release(names["finished_attempt"], Outcome.SUCCEEDED, Cause.BUDGET)
    await world.send_heartbeat(names["worker"], dead=[names["lost_attempt"]])
    names["queued_job"] = (await world.submit_one_job(seeds=[7])).id
    await world.assign(names["queued_job"], names["worker"])
    await _send_first_records(served)
    await _make_snapshots(served)


async def _send_first_records(served: AppServer) -> None:
    """Sends three records of the live attempt: two points and a snapshot whose file is not
    uploaded.
    """
    run = served.names["live_run"]
    served.names["uploading_snapshot"] = new_id("snp")
    batch = [
        make_points(run, "loss", [1]),
        make_points(run, "loss", [2]),
        make_snapshot(run, served.names["uploading_snapshot"], 2, [SNAPSHOT_FILE]),
    ]
    async with served.client("live_attempt") as client:
        path = f"/api/v1/attempts/{served.names['live_attempt']}/telemetry"
        answer = await client.post(path, json={"first_seq": 1, "records": batch})
        assert answer.json() == {"acked_seq": 3}, answer.text


async def _make_snapshots(served: AppServer) -> None:
    """Creates snapshots of other runs and projects, and one whose files were deleted."""
    names = served.names
    owners = {
        "foreign": (names["foreign_run"], SnapshotState.VERIFIED),
        "finished": (names["finished_run"], SnapshotState.VERIFIED),
    }
    owners["deleted"] = (names["finished_run"], SnapshotState.DELETED)
    at = {
        "fence": 1,
        "seq": 1,
        "reason": "periodic",
        "env_step": 1,
        "update": 0,
        "episode": 0,
        "format_version": 1,
    }
    rest = {**at, "resume_exact": True, "size": 4, "attempt_id": names["finished_attempt"]}
    async with served.database.write() as session:
        for name, (run_id, state) in owners.items():
            names[f"{name}_snapshot"] = new_id("snp")
            run = (await session.scalars(select(RunRow).where(RunRow.id == run_id))).one()
            owner = {
                "project_id": run.project_id,
                "experiment_id": run.experiment_id,
                "run_id": run.id,
            }
            session.add(
                SnapshotRow(id=names[f"{name}_snapshot"], state=state.value, **owner, **rest)
            )
