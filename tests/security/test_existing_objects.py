"""Authorisation with existing objects: every route and caller, for two projects.

`test_matrix.py` names objects that do not exist. Here the same callers send valid requests for the
objects of the project `default`, which most of them are members of, and for those of `elsewhere`,
of which only `foreign` is one.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import pytest_asyncio
from sqlalchemy import select

from app.db.engine import Database
from app.db.models import LoginSessionRow, MembershipRow, ProjectRow, TokenRow, UserRow
from palestra.contract.names import new_id
from palestra.contract.permissions import Role
from tests.app.api.serving import AppServer
from tests.security.existing_objects import CALLS, WINDOW, Audience, Call
from tests.security.test_matrix import (
    ATTEMPT,
    ENROL,
    NEEDS,
    NOBODY,
    OF_PROJECT,
    OUTSIDERS,
    OWN,
    PERMITS,
    PUBLIC,
    list_limited_routes,
)
from tests.security.test_shares import store_artifact
from tests.support.server_fixture import make_definition

pytestmark = pytest.mark.asyncio(loop_scope="module")

WITHOUT_OBJECT = {
    "GET /session",
    "DELETE /session",
    "GET /account",
    "PATCH /account",
    "PUT /account/password",
    "GET /account/sessions",
    "GET /account/overview",
    "POST /jobs:act",
    "POST /jobs:preview-act",
    "POST /account:sign-out",
    "GET /openapi.json",
    "GET /tokens",
    "GET /users",
    "GET /usage",
    "GET /usage/quotas",
    "GET /usage:export",
    "GET /invitations",
    "GET /definitions/schema",
    "GET /definitions/presets",
    "POST /experiments",
    "POST /experiments:preview",
    "GET /experiments",
    "GET /runs",
    "GET /views",
    "POST /views",
    "GET /runs:keys",
    "GET /runs:groups",
    "POST /runs:act",
    "GET /jobs",
    "GET /projects",
    "GET /projects:deleted",
    "GET /audit",
    "GET /audit:export",
    "GET /events",
    "POST /events:stream",
    "GET /workers",
    "GET /pools",
    "GET /catalogue",
}
"""Lists and calls that name no object: `test_crawler.py` reads what they show."""
MACHINES = {"own_worker", "live_attempt", "enrolment"}
"""Credentials of no user, for which paths are not looked up."""
SIDES = ("default", "elsewhere")
Objects = dict[str, str]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def objects(shared: AppServer) -> AsyncIterator[dict[str, Objects]]:
    """IDs of objects by project, while no transaction of the server is committed."""
    made = {side: await _make_objects(shared, side) for side in SIDES}
    made["member's"] = {**made["default"], **await _submit_as_member(shared)}
    opened = (shared.database, shared.reserved)
    writes = [database.write for database in opened]
    for database in opened:
        database.write = make_rolled_back_write(database)  # type: ignore[method-assign]
    yield made
    for database, write in zip(opened, writes, strict=True):
        database.write = write  # type: ignore[method-assign]


def make_rolled_back_write(database: Database) -> Any:
    @asynccontextmanager
    async def write() -> AsyncIterator[Any]:
        async with database.trial() as session:
            yield session

    return write


async def _make_objects(shared: AppServer, side: str) -> Objects:
    names, ours = shared.names, side == "default"
    run_id = names["finished_run" if ours else "foreign_run"]
    made = {
        "project": side,
        "slug": side,
        "run_id": run_id,
        "job_id": names["queued_job" if ours else "foreign_job"],
        "experiment_id": names["experiment" if ours else "foreign_experiment"],
        "snapshot_id": names["finished_snapshot" if ours else "foreign_snapshot"],
        "worker_id": names["worker"],
        "user": f"victim-{side}",
        "pool": side,
    }
    async with shared.client("user") as client:
        body = {"invitations": [{"name": f"invited-{side}"}]}
        invited = (await client.post("/api/v1/users:invite", json=body)).json()
        made["invitation_id"] = invited["items"][0]["id"]
        path, body = f"/api/v1/pools/{side}/enrolment-tokens", {"name": "x", "expires_in_days": 1}
        made["enrolment_id"] = (await client.post(path, json=body)).json()["id"]
        path = f"/api/v1/pools/{side}/windows"
        made["window_id"] = (await client.post(path, json=WINDOW)).json()["id"]
        path, body = f"/api/v1/projects/{side}/thresholds/solved", {"series": "loss", "value": 1}
        made["threshold"] = (await client.put(path, json=body)).json()["name"]
    async with shared.client("maintainer" if ours else "foreign") as client:
        path = f"/api/v1/projects/{side}/service-accounts"
        answer = await client.post(path, json={"name": f"robot-{side}"})
        made["name"] = answer.json()["name"]
    async with shared.client("user" if ours else "foreign") as client:
        path = f"/api/v1/views?project={side}"
        body = {"name": side, "visibility": "project", "state": {}}
        made["view_id"] = (await client.post(path, json=body)).json()["id"]
    made["artifact_id"] = await store_artifact(
        shared, "finished_run" if ours else "foreign_run", ""
    )
    async with shared.database.write() as session:
        project = select(ProjectRow.id).where(ProjectRow.slug == side)
        project_id = (await session.scalars(project)).one()
        victim = UserRow(id=new_id("usr"), name=made["user"])
        session.add(victim)
        await session.flush()
        role = {"project_id": project_id, "role": Role.MEMBER.value}
        session.add(MembershipRow(user_id=victim.id, **role))
        held = select(TokenRow).where(TokenRow.name == ("user" if ours else "foreign"))
        token = (await session.scalars(held)).one()
        login = LoginSessionRow(id=new_id("ses"), user_id=token.user_id, secret_hash=side)
        session.add(login)
        made |= {"user_id": victim.id, "token_id": token.id, "session_id": login.id}
    return made


async def _submit_as_member(shared: AppServer) -> Objects:
    document = make_definition(loop={"env_steps": 77})
    async with shared.client("member") as client:
        answer = await client.post("/api/v1/experiments", json={"definition": document})
        experiment_id = answer.json()["id"]
        jobs = await client.get("/api/v1/jobs", params={"experiment": experiment_id})
        (job,) = jobs.json()["items"]
        body = {"name": "shared", "visibility": "project", "state": {}}
        view = (await client.post("/api/v1/views?project=default", json=body)).json()
    return {
        "experiment_id": experiment_id,
        "job_id": job["id"],
        "run_id": job["run_ids"][0],
        "view_id": view["id"],
    }


async def test_every_route_that_names_an_object_has_a_call() -> None:
    of_workers = {ENROL, OWN, ATTEMPT, PUBLIC}
    of_users = {route for route, need in NEEDS.items() if need not in of_workers}
    limited = {f"{method} {path.removeprefix('/api/v1')}" for method, path in list_limited_routes()}
    assert (of_users - WITHOUT_OBJECT) | limited == set(CALLS)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("who", [name for name in PERMITS if name != "cookie"])
async def test_every_caller_gets_the_status_of_the_table(
    shared: AppServer, objects: dict[str, Objects], who: str, side: str
) -> None:
    wrong = []
    rows = await shared.count_rows()
    async with shared.client(who) as client:
        for route, call in CALLS.items():
            method, path = route.split(" ")
            url = substitute(f"/api/v1{path}{call.query}", objects[side])
            body = substitute(call.body, objects[side])
            options = {} if body is None else {"json": body}
            answer = await client.request(method, url, headers={"Last-Event-ID": "x"}, **options)
            expected = _get_expected_status(who, side, route, call)
            if answer.status_code != expected:
                wrong.append(f"{route} of {side}: {_summarise(answer)}, not {expected}")
    assert not wrong, "\n".join(["", *wrong])
    assert await shared.count_rows() == rows, "no call was committed"


@pytest.mark.both_databases(
    "It calls every route on objects that exist, with the statements of each database.",
    of=("app.db.repositories.access",),
)
@pytest.mark.parametrize(
    ("who", "may"), [("member", True), ("maintainer", True), ("service", False), ("viewer", False)]
)
async def test_members_act_on_what_they_submitted(
    shared: AppServer, objects: dict[str, Objects], who: str, may: bool
) -> None:
    calls = {route: call for route, call in CALLS.items() if call.of_submitter}
    said = {}
    async with shared.client(who) as client:
        for route, call in calls.items():
            method, path = route.split(" ")
            url = substitute(f"/api/v1{path}", objects["member's"])
            said[route] = (await client.request(method, url, json=call.body)).status_code
    assert said == {route: call.status if may else 403 for route, call in calls.items()}


def substitute(value: Any, names: Objects) -> Any:
    """Returns `value` with the names in its strings replaced by IDs."""
    if isinstance(value, str):
        for name, known in {**names, "run": names["run_id"]}.items():
            value = value.replace(f"{{{name}}}", known)
        return value
    if isinstance(value, dict):
        return {key: substitute(one, names) for key, one in value.items()}
    return [substitute(one, names) for one in value] if isinstance(value, list) else value


def _get_expected_status(who: str, side: str, route: str, call: Call) -> int:
    need = NEEDS[route.removesuffix(OF_PROJECT)]
    if who in NOBODY:
        return 401
    if "{project}" in route and who not in MACHINES and not _is_member(who, side):
        return 404
    if need not in PERMITS[who]:
        return 403
    if not _has_access(who, side, call.audience):
        return 404
    if who in call.refused or (call.of_submitter and who in {"member", "service"}):
        return 403
    return call.status


def _is_member(who: str, side: str) -> bool:
    return who == "foreign" if side == "elsewhere" else who not in OUTSIDERS


def _has_access(who: str, side: str, audience: Audience) -> bool:
    if audience is Audience.HOLDER:
        holders = {"default": {"user", "admin_only"}, "elsewhere": {"foreign"}}
        return who in holders[side]
    is_administrator = who in {"user", "admin_only", "administrator"}
    if audience is Audience.POOL:
        return _is_member(who, "default") or is_administrator
    return who not in MACHINES and (
        audience is Audience.ALL
        or _is_member(who, side)
        or (audience is Audience.MEMBERS_AND_ADMINISTRATORS and is_administrator)
    )


async def test_the_number_of_tested_cells_is_printed() -> None:
    callers = len(PERMITS) - 1
    cells = callers * len(CALLS) * len(SIDES)
    sizes = f"{callers} kinds of callers x {len(CALLS)} routes x {len(SIDES)} projects"
    print(f"{sizes} = {cells} cells")  # noqa: T201 - the size of the table is to be seen
    assert cells > 1_500


def _summarise(answer: httpx.Response) -> str:
    is_problem = answer.headers.get("content-type") == "application/problem+json"
    return f"{answer.status_code} {answer.json()['code'] if is_problem else ''}"
