"""Access to routes: credentials, cookies and CSRF tokens.

Every route requires a credential unless it is in the list `PUBLIC`.
"""

import contextlib
import inspect
from pathlib import Path

import pytest
from fastapi.routing import iter_route_contexts
from fastapi.security.base import SecurityBase

from app.api.auth import NEEDS
from app.api.openapi import list_api_routes, need_of
from app.api.query import iterate_dependencies
from app.api.strict_body import JsonBody
from app.domain.login_limits import LoginLimits
from app.main import create_app
from app.services.access import logins
from app.settings import Settings
from tests.app.api.serving import ORIGIN, AppServer, serve

pytestmark = pytest.mark.asyncio(loop_scope="module")

PUBLIC = {
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/api/v1/session:options"),
    ("POST", "/api/v1/session"),
    ("POST", "/api/v1/session:redeem"),
}
SUBSTITUTES = {
    "project": "default",
    "slug": "x",
    "experiment_id": "x",
    "run_id": "x",
    "job_id": "x",
    "attempt_id": "x",
    "worker_id": "x",
    "token_id": "x",
    "artifact_id": "x",
    "invitation_id": "x",
    "user_id": "x",
    "session_id": "x",
    "snapshot_id": "x",
    "user": "x",
    "name": "x",
    "pool": "x",
    "enrolment_id": "x",
    "window_id": "x",
    "view_id": "x",
    "threshold": "x",
}
"""Values of path parameters: a project of the caller, and IDs that do not exist."""


def _list_routes() -> list[tuple[str, str]]:
    app = create_app(Settings())
    found = [
        (method, context.path or "")
        for context in iter_route_contexts(app.routes)
        for method in context.methods or {"MOUNT"}
    ]
    assert len(found) > 30
    return sorted(found)


@pytest.mark.parametrize(("method", "path"), _list_routes())
async def test_a_route_without_credentials_is_refused_unless_public(
    shared: AppServer, method: str, path: str
) -> None:
    for name, value in SUBSTITUTES.items():
        path = path.replace(f"{{{name}}}", value)
    assert "{" not in path
    async with shared.client() as client:
        answer = await client.request(method, path)
    if (method, path) in PUBLIC:
        assert answer.status_code not in {401, 403}
    else:
        assert answer.status_code in {401, 403}, answer.text
        assert answer.headers["content-type"] == "application/problem+json"


async def test_only_public_routes_need_no_credential() -> None:
    app = create_app(Settings())
    open_routes = {
        (method, context.path)
        for context in iter_route_contexts(app.routes)
        for method in context.methods or ()
        if need_of(context) is None
    }
    assert open_routes == PUBLIC
    assert len(PUBLIC) <= 5


async def test_no_dependency_is_called_in_a_thread() -> None:
    """FastAPI calls plain functions in its thread pool, which each request would wait for."""
    plain = {
        dependant.call
        for context in list_api_routes(create_app(Settings()))
        if need_of(context)
        for dependant in iterate_dependencies(context.dependant)
        if not inspect.iscoroutinefunction(dependant.call)
        and not inspect.isasyncgenfunction(dependant.call)
        and not isinstance(dependant.call, SecurityBase | JsonBody)
    }
    assert plain == set()
    assert inspect.iscoroutinefunction(JsonBody.__call__)


async def test_no_body_is_read_before_the_caller_is_authorised() -> None:
    for context in list_api_routes(create_app(Settings())):
        parts = context.dependant.dependencies if need_of(context) else []
        calls = [dependant.call for part in parts for dependant in iterate_dependencies(part)]
        needs = [
            index for index, call in enumerate(calls) if getattr(call, NEEDS, None) is not None
        ]
        bodies = [index for index, call in enumerate(calls) if isinstance(call, JsonBody)]
        assert not bodies or needs[0] < bodies[0], context.path


@pytest.mark.parametrize(
    ("who", "method", "path", "status"),
    [
        ("reader", "GET", "/api/v1/runs", 200),
        ("reader", "POST", "/api/v1/experiments", 403),
        ("reader", "POST", "/api/v1/jobs/{queued_job}:cancel", 403),
        ("reader", "POST", "/api/v1/workers/{worker}:drain", 403),
        ("reader", "POST", "/api/v1/leases", 403),
        ("submitter", "GET", "/api/v1/runs", 403),
        ("enrolment", "GET", "/api/v1/runs", 403),
        ("enrolment", "GET", "/api/v1/tokens", 403),
        ("enrolment", "POST", "/api/v1/experiments", 403),
        ("user", "POST", "/api/v1/leases", 403),
        ("user", "POST", "/api/v1/attempts/{live_attempt}/telemetry", 403),
        ("enrolment", "POST", "/api/v1/attempts/{live_attempt}/telemetry", 403),
        ("enrolment", "POST", "/api/v1/leases", 403),
        ("enrolment", "POST", "/api/v1/workers/{worker}:heartbeat", 403),
        ("other_worker", "POST", "/api/v1/workers/{worker}:heartbeat", 403),
        ("own_worker", "POST", "/api/v1/workers/{worker}:heartbeat", 200),
        ("own_worker", "POST", "/api/v1/workers/{worker}:forget", 403),
        ("own_worker", "GET", "/api/v1/runs", 403),
        ("own_worker", "GET", "/api/v1/tokens", 403),
        ("own_worker", "GET", "/api/v1/session", 403),
        ("own_worker", "POST", "/api/v1/attempts/{live_attempt}/telemetry", 403),
        ("live_attempt", "GET", "/api/v1/runs", 403),
        ("live_attempt", "GET", "/api/v1/session", 403),
        ("live_attempt", "POST", "/api/v1/workers", 403),
        ("live_attempt", "POST", "/api/v1/attempts/{finished_attempt}/telemetry", 403),
        ("foreign", "GET", "/api/v1/runs/{live_run}", 404),
        ("foreign", "GET", "/api/v1/experiments/{experiment}", 404),
        ("foreign", "POST", "/api/v1/jobs/{queued_job}:cancel", 404),
        ("foreign", "GET", "/api/v1/workers/{worker}", 404),
        ("foreign", "DELETE", "/api/v1/tokens/{token}", 404),
    ],
)
async def test_routes_require_the_scope_and_the_project_of_a_token(
    shared: AppServer, who: str, method: str, path: str, status: int
) -> None:
    async with shared.client(who) as client:
        body = {} if path.endswith(":heartbeat") else None
        answer = await client.request(method, path.format(**shared.names), json=body)
    assert answer.status_code == status, answer.text


async def test_changes_with_a_cookie_login_need_the_same_origin_and_a_csrf_token(
    shared: AppServer,
) -> None:
    client, csrf = await shared.browser()
    path = f"/api/v1/experiments/{shared.names['foreign_experiment']}:archive"
    good = {"Origin": ORIGIN, "X-CSRF-Token": csrf}
    async with contextlib.aclosing(client):
        assert (await client.get("/api/v1/session")).json()["csrf_token"] == csrf
        assert (await client.post(path, headers=good)).status_code == 404
        assert (
            await client.post(path, headers={"Sec-Fetch-Site": "same-origin", "X-CSRF-Token": csrf})
        ).status_code == 404
        for headers in (
            {},
            {"Origin": ORIGIN},
            {"X-CSRF-Token": csrf},
            {**good, "X-CSRF-Token": csrf[:-1] + "x"},
            {**good, "Origin": "null"},
            {**good, "Origin": "http://evil.example"},
            {**good, "Origin": "http://127.0.0.1:9999"},
            {**good, "Sec-Fetch-Site": "cross-site"},
            {**good, "Sec-Fetch-Site": "same-site"},
        ):
            assert (await client.post(path, headers=headers)).status_code == 403, headers


async def test_the_server_reports_whether_any_user_can_log_in_by_password(
    database_url: str, tmp_path: Path
) -> None:
    """Regression: the login page asked for a password although no user had one."""
    async with serve(database_url, tmp_path) as served, served.client() as client:
        assert (await client.get("/api/v1/session:options")).json() == {"password": False}
        async with served.database.write() as session:
            code = await logins.make_link(session, served.world.admin.user_id, 3_600)
        body = {"code": code, "password": "a long enough one"}
        assert (
            await client.post("/api/v1/session:redeem", json=body, headers={"Origin": ORIGIN})
        ).status_code == 201
        assert (await client.get("/api/v1/session:options")).json() == {"password": True}


async def test_logout_ends_the_session_and_a_login_link_works_once(shared: AppServer) -> None:
    client, csrf = await shared.browser()
    async with contextlib.aclosing(client):
        headers = {"Origin": ORIGIN, "X-CSRF-Token": csrf}
        assert (await client.delete("/api/v1/session", headers=headers)).status_code == 204
        assert (await client.get("/api/v1/session")).status_code == 401


async def test_secrets_are_stored_as_hashes_only(shared: AppServer) -> None:
    from sqlalchemy import select

    from app.db.models import AttemptRow, LoginSessionRow, TokenRow

    client, _ = await shared.browser()
    cookie = client.cookies["palestra_session"]
    await client.aclose()
    async with shared.database.read() as session:
        stored = [
            *await session.scalars(select(TokenRow.secret_hash)),
            *await session.scalars(select(LoginSessionRow.secret_hash)),
        ]
        stored += [*await session.scalars(select(AttemptRow.token_hash))]
    assert all(len(text) == 64 and "_" not in text for text in stored)
    assert cookie not in stored
    assert not set(shared.tokens.values()) & set(stored)


async def test_a_token_creates_no_token_with_more_scopes(shared: AppServer) -> None:
    async with shared.client("user") as client:
        made = (
            await client.post("/api/v1/tokens", json={"name": "w", "scopes": ["submit", "read"]})
        ).json()
        assert made["secret"].startswith("plr_")
        listed = (await client.get("/api/v1/tokens", params={"limit": 1})).json()
        assert listed["items"][0]["id"] == made["id"]
        assert listed["items"][0]["secret"] is None
        rest = (await client.get("/api/v1/tokens", params={"cursor": listed["next_cursor"]})).json()
        assert made["id"] not in {token["id"] for token in rest["items"]}
        assert (await client.delete(f"/api/v1/tokens/{made['id']}")).status_code == 204
    shared.tokens["gone"] = made["secret"]
    async with shared.client("gone") as client:
        assert (await client.get("/api/v1/session")).status_code == 401


async def test_password_logins_are_rate_limited_and_reveal_nothing(shared: AppServer) -> None:
    shared.app.state.login_limits = LoginLimits()
    async with shared.client() as client:
        answers = [
            await client.post("/api/v1/session", json={"user": name, "password": "x"})
            for name in ("admin", "nobody", "zoe")
            for _ in range(4)
        ]
    assert [answer.status_code for answer in answers] == [401] * 10 + [429] * 2
    assert int(answers[-1].headers["retry-after"]) > 0
    assert answers[0].json()["detail"] == answers[7].json()["detail"]
