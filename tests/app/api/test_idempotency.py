"""A stored answer is given again only to a caller who may still make the request."""

from typing import Any

import httpx
import pytest
from sqlalchemy import delete, update

from app.db.models import MembershipRow, ProjectRow, UserRow
from app.services.access import tokens
from palestra.contract.access import TokenRequest
from palestra.contract.names import Scope, new_id
from palestra.contract.states import Cause, Outcome
from tests.app.api.serving import AppServer
from tests.support.server_fixture import make_definition

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.both_databases(
        "A key is inserted once by a statement of each database.",
        of=("app.db.repositories.access",),
    ),
]

NAMES = iter(range(1_000))
SLOTS = iter(range(5, 16))


async def _add_person(served: AppServer, *projects: str) -> str:
    """Makes a member of projects, with a token of all of them and one of each; returns the name."""
    name = f"person-{next(NAMES)}"
    request = TokenRequest(name=name, scopes=(Scope.READ, Scope.SUBMIT))
    async with served.database.write() as session:
        user = UserRow(id=new_id("usr"), name=name)
        session.add(user)
        await session.flush()
        for project_id in projects:
            session.add(MembershipRow(project_id=project_id, user_id=user.id, role="member"))
        await session.flush()
        for project_id in (None, *projects):
            token = await tokens.issue_token(session, project_id, user.id, request)
            served.tokens[f"{name} {project_id}"] = token.secret or ""
    served.names[name] = user.id
    return name


async def _make_project(served: AppServer) -> str:
    name = f"second-{next(NAMES)}"
    project = ProjectRow(id=new_id("prj"), slug=name, name=name)
    async with served.database.write() as session:
        session.add(project)
    await served.world.make_pool("default", project_id=project.id)
    return project.id


async def _change_role(served: AppServer, name: str, role: str | None) -> None:
    of_user = (MembershipRow.user_id == served.names[name]) & (
        MembershipRow.project_id == served.world.project_id
    )
    async with served.database.write() as session:
        if role is None:
            await session.execute(delete(MembershipRow).where(of_user))
        else:
            await session.execute(update(MembershipRow).where(of_user).values(role=role))


async def _post(served: AppServer, who: str, path: str, body: Any, key: str) -> httpx.Response:
    async with served.client(who) as client:
        return await client.post(f"/api/v1{path}", json=body, headers={"Idempotency-Key": key})


def _make_submission() -> dict[str, Any]:
    return {"definition": make_definition(loop={"env_steps": 100 + next(NAMES)})}


async def test_a_key_of_one_project_is_not_answered_in_another(shared: AppServer) -> None:
    first, second = shared.world.project_id, await _make_project(shared)
    name, body, key = (
        await _add_person(shared, first, second),
        _make_submission(),
        f"k{next(NAMES)}",
    )
    made = await _post(shared, f"{name} {first}", "/experiments", body, key)
    assert (made.status_code, made.json()["project"]) == (201, "default")
    other = await _post(shared, f"{name} {second}", "/experiments", body, key)
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
    again = await _post(shared, f"{name} {first}", "/experiments", body, key)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.content == made.content
    fresh = await _post(shared, f"{name} {second}", "/experiments", body, f"{key} of second")
    assert fresh.status_code == 201, fresh.text
    assert fresh.json()["project"] != "default"


@pytest.mark.parametrize("role", ["viewer", None])
async def test_a_former_member_gets_no_stored_submission(
    shared: AppServer, role: str | None
) -> None:
    name, body, key = await _add_person(shared, shared.world.project_id), _make_submission(), "k"
    made = await _post(shared, f"{name} None", "/experiments", body, key)
    assert made.status_code == 201, made.text
    await _change_role(shared, name, role)
    for used in (key, "another"):
        answer = await _post(shared, f"{name} None", "/experiments", body, used)
        assert (answer.status_code, answer.json()["code"]) == (403, "missing_permission")
    await _change_role(shared, name, "member")


@pytest.mark.parametrize("role", ["viewer", None])
async def test_a_former_member_gets_no_stored_job(shared: AppServer, role: str | None) -> None:
    name = await _add_person(shared, shared.world.project_id, await _make_project(shared))
    who, route = f"{name} None", "/experiments?project=default"
    experiment = (await _post(shared, who, route, _make_submission(), "e")).json()
    async with shared.client(who) as client:
        found = await client.get(f"/api/v1/experiments/{experiment['id']}/runs")
    run = found.json()["items"][0]
    await shared.world.cancel(run["job_id"])
    path = f"/runs/{run['id']}"
    retried = await _post(shared, who, f"{path}:retry", {}, "r")
    assert retried.status_code == 201, retried.text
    claimed = await shared.world.start(
        retried.json()["id"], shared.names["worker"], slot=next(SLOTS)
    )
    attempt = claimed.work_order.attempt_id
    await shared.world.release(attempt, Outcome.SUCCEEDED, Cause.BUDGET)
    queued = await _post(shared, who, f"{path}/jobs", {"schedule": "train"}, "j")
    assert queued.status_code == 201, queued.text
    await _change_role(shared, name, role)
    for key in ("r", "j"):
        rest, body = (":retry", {}) if key == "r" else ("/jobs", {"schedule": "train"})
        answer = await _post(shared, who, f"{path}{rest}", body, key)
        fresh = await _post(shared, who, f"{path}{rest}", body, f"{key} again")
        assert answer.status_code == (404 if role is None else 403), answer.text
        assert answer.json()["code"] == fresh.json()["code"]
