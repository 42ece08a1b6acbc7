"""Every mutating route leaves an audit entry that names actor, credential, object and project."""

import contextlib
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.routing import iter_route_contexts
from sqlalchemy import func, select

from app.api.auth import SAFE_METHODS
from app.db.models import AuditRow, LoginSessionRow, UserRow
from app.main import create_app
from app.services.access import logins, principals
from app.services.access.audit_actor import describe_actor
from app.settings import Settings
from palestra.contract.names import new_id
from tests.app.api.audited.call import AuditedCall
from tests.app.api.audited_calls import CALLS, NOT_AUDITED
from tests.app.api.serving import ORIGIN, AppServer, serve

pytestmark = pytest.mark.both_databases(
    "It calls every route that changes something, with the statements of each database.",
    of=(
        "app.db.repositories.access",
        "app.db.upsert",
    ),
)


PASSWORD = "copper-lantern-42-orchard"


def _list_mutating_routes() -> set[str]:
    return {
        f"{method} {(context.path or '').removeprefix('/api/v1')}"
        for context in iter_route_contexts(create_app(Settings()).routes)
        for method in context.methods or ()
        if method not in SAFE_METHODS
    }


def test_every_mutating_route_is_called_or_named_as_an_exception() -> None:
    called = {call.route for call in CALLS}
    assert not called & set(NOT_AUDITED)
    assert called | set(NOT_AUDITED) == _list_mutating_routes()


async def test_every_mutating_route_leaves_an_audit_entry(
    database_url: str, tmp_path: Path
) -> None:
    async with serve(database_url, tmp_path) as served:
        caller = _Caller(served, await _make_values(served))
        wrong = [
            f"{call.route}: {said}" for call in CALLS if (said := await caller.find_fault(call))
        ]
    assert not wrong, "\n".join(wrong)


async def _make_values(served: AppServer) -> dict[str, Any]:
    """Returns the values of the placeholders in calls; makes objects that the server lacks."""
    world = served.world
    fresh, idle = await world.submit_one_job(seeds=[51]), await world.submit(
        {"kind": "rl", "name": "idle", "env": {"id": "CartPole-v1"}, "agent": {"name": "dqn"},
         "loop": {"env_steps": 9}}
    )  # fmt: skip
    for job in await world.list_jobs():
        if job.experiment_id == idle[0].id:
            await world.cancel(job.id)
    async with served.database.write() as session:
        person = UserRow(id=new_id("usr"), name="leaver")
        session.add(person)
        code = await logins.make_link(session, world.admin.user_id, 3_600)
    queued = await world.job(served.names["queued_job"])
    await world.assign(fresh.id, served.names["worker"])
    return served.names | {
        "project": "default",
        "project_id": world.project_id,
        "me": world.admin.user_id,
        "person": person.id,
        "code": code,
        "password": PASSWORD,
        "idle_experiment": idle[0].id,
        "queued_run": queued.run_ids[0],
        "fresh_job": fresh.id,
        "claim": {
            "job_id": fresh.id,
            "expected_attempt": 1,
            "worker_id": served.names["worker"],
            "slot": 9,
        },
    }


class _Caller:
    """Sends calls and compares the audit entries that they leave with the expected ones."""

    def __init__(self, served: AppServer, values: dict[str, Any]) -> None:
        self._served = served
        self._values = values
        self._browser: tuple[httpx.AsyncClient, str] | None = None

    async def find_fault(self, call: AuditedCall) -> str | None:
        """Sends a call; returns a text about the fault of its entry, or `None`."""
        client, headers = await self._open_client(call.who)
        who = await self._get_identity(call.who)
        before = await self._read_last_entry()
        method, path = call.route.split(" ")
        for name, value in {**self._values, **call.at}.items():
            path = path.replace(f"{{{name}}}", str(self._fill(value)))
        async with contextlib.aclosing(client):
            answer = await client.request(
                method, f"/api/v1{path}{call.query}", json=self._fill(call.body), headers=headers
            )
        if not answer.is_success:
            return f"{answer.status_code} {answer.text}"
        await self._keep(call, answer)
        return await self._compare(call, who, before)

    async def _open_client(self, who: str) -> tuple[httpx.AsyncClient, dict[str, str]]:
        if who != "browser":
            return self._served.client(who), {"Origin": ORIGIN} if who == "anonymous" else {}
        client, csrf = await self._served.browser()
        self._values["browser"] = await self._read_newest_login()
        return client, {"Origin": ORIGIN, "X-CSRF-Token": csrf}

    async def _get_identity(self, who: str) -> tuple[str, str | None, str | None]:
        """Returns actor, user and credential of the entries of a caller."""
        admin = self._served.world.admin.user_id
        if who in {"browser", "anonymous"}:
            return f"user:{admin}", admin, self._values["browser"] if who == "browser" else None
        async with self._served.database.read() as session:
            found = await principals.find_by_token(session, self._served.tokens[who])
        assert found is not None
        return describe_actor(found), found.user_id or None, found.credential_id

    async def _read_last_entry(self) -> int:
        async with self._served.database.read() as session:
            return await session.scalar(select(func.max(AuditRow.id))) or 0

    async def _read_newest_login(self) -> str:
        query = select(LoginSessionRow.id).order_by(LoginSessionRow.id.desc()).limit(1)
        async with self._served.database.read() as session:
            return await session.scalar(query) or ""

    def _fill(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._fill(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self._fill(one) for one in value]
        if isinstance(value, str) and value.startswith("{"):
            return self._values[value.strip("{}")]
        return value

    async def _keep(self, call: AuditedCall, answer: httpx.Response) -> None:
        for name, place in call.keeps.items():
            found = answer.json()
            for part in place.split("."):
                found = found[int(part)] if part.isdigit() else found[part]
            self._values[name] = found
        if call.action == "login.open":
            self._values["login"] = await self._read_newest_login()
        if call.route == "POST /leases":
            self._served.tokens["fresh_attempt"] = answer.json()["token"]

    async def _compare(
        self, call: AuditedCall, who: tuple[str, str | None, str | None], before: int
    ) -> str | None:
        query = select(AuditRow).where(AuditRow.id > before).order_by(AuditRow.id)
        async with self._served.database.read() as session:
            rows = (await session.scalars(query)).all()
        wanted = (
            call.action,
            self._fill(call.about),
            self._fill(call.in_project) or None,
            *who,
            "127.0.0.1",
        )
        found = Counter(
            (
                row.action,
                row.object_id,
                row.project_id,
                row.actor,
                row.user_id,
                row.credential,
                row.address,
            )
            for row in rows
        )
        return None if found[wanted] == 1 else f"wants {wanted}, found {list(found)}"
