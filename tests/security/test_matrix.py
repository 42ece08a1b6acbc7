"""Authorisation: every route with every kind of credential, compared with one table.

The routes come from `app.routes`. A route that is missing from `NEEDS` fails the test, so a new
route must state its required credential.
"""

import contextlib
import functools

import pytest
from fastapi.routing import iter_route_contexts

from app.api.auth import CSRF_HEADER
from app.api.openapi import list_api_routes, may_be_limited
from app.main import create_app
from app.settings import Settings
from tests.app.api.serving import ORIGIN, AppServer
from tests.support.documented_statuses import read_paths

pytestmark = pytest.mark.asyncio(loop_scope="module")

PUBLIC = "public"
READ, SUBMIT, ADMIN, ATTEMPT = "read", "submit", "server administrator", "attempt"
MAINTAIN, GOVERN = "maintainer", "maintainer or server administrator"
CANCEL = "submit, or server administrator"
READ_OR_ATTEMPT, MANAGE, ANYONE = "read or attempt", "login or admin", "anyone"
PERSON = "login of a person, or admin of all projects"
OWN, ENROL = "worker's own secret", "worker, or own secret"

NEEDS = {
    "GET /healthz": PUBLIC,
    "GET /readyz": PUBLIC,
    "GET /session:options": PUBLIC,
    "POST /session": PUBLIC,
    "POST /session:redeem": PUBLIC,
    "GET /session": ANYONE,
    "DELETE /session": ANYONE,
    "GET /openapi.json": ANYONE,
    "GET /account": PERSON,
    "PATCH /account": PERSON,
    "PUT /account/password": PERSON,
    "GET /account/sessions": PERSON,
    "GET /account/overview": READ,
    "DELETE /account/sessions/{session_id}": PERSON,
    "POST /account:sign-out": PERSON,
    "POST /tokens": MANAGE,
    "GET /tokens": MANAGE,
    "DELETE /tokens/{token_id}": MANAGE,
    "POST /tokens/{token_id}:rotate": MANAGE,
    "GET /projects/{project}/service-accounts": MAINTAIN,
    "POST /projects/{project}/service-accounts": MAINTAIN,
    "DELETE /projects/{project}/service-accounts/{name}": MAINTAIN,
    "POST /projects/{project}/service-accounts/{name}/tokens": MAINTAIN,
    "POST /users:invite": ADMIN,
    "GET /users": ADMIN,
    "GET /users/{user_id}": ADMIN,
    "PATCH /users/{user_id}": ADMIN,
    "DELETE /users/{user_id}": ADMIN,
    "POST /users/{user_id}:disable": ADMIN,
    "POST /users/{user_id}:enable": ADMIN,
    "POST /users/{user_id}:reset-password": ADMIN,
    "POST /users/{user_id}:sign-out": ADMIN,
    "GET /invitations": ADMIN,
    "DELETE /invitations/{invitation_id}": ADMIN,
    "GET /definitions/schema": READ,
    "GET /definitions/presets": READ,
    "POST /experiments": SUBMIT,
    "POST /experiments:preview": SUBMIT,
    "GET /experiments": READ,
    "GET /experiments/{experiment_id}": READ,
    "GET /experiments/{experiment_id}/runs": READ,
    "PATCH /experiments/{experiment_id}": SUBMIT,
    "POST /experiments/{experiment_id}:archive": SUBMIT,
    "POST /experiments/{experiment_id}:unarchive": SUBMIT,
    "POST /runs/{run_id}:retry": SUBMIT,
    "GET /runs": READ,
    "GET /runs:keys": READ,
    "GET /runs:groups": READ,
    "POST /runs:act": SUBMIT,
    "GET /runs/{run_id}": READ,
    "GET /views": READ,
    "POST /views": SUBMIT,
    "GET /views/{view_id}": READ,
    "PATCH /views/{view_id}": SUBMIT,
    "DELETE /views/{view_id}": SUBMIT,
    "GET /runs/{run_id}/provenance": READ,
    "GET /runs/{run_id}/snapshots": READ,
    "GET /runs/{run_id}/snapshots/{snapshot_id}/archive": READ,
    "GET /runs/{run_id}/evaluations": READ,
    "GET /runs/{run_id}/health": READ,
    "GET /runs/{run_id}/artifacts": READ,
    "GET /runs/{run_id}/series": READ,
    "GET /runs/{run_id}/log": READ,
    "POST /runs/{run_id}/jobs": SUBMIT,
    "GET /jobs": READ,
    "POST /jobs:act": SUBMIT,
    "POST /jobs:preview-act": SUBMIT,
    "GET /jobs/{job_id}": READ,
    "GET /jobs/{job_id}/explain": READ,
    "PATCH /jobs/{job_id}": SUBMIT,
    "POST /jobs/{job_id}:preview-change": SUBMIT,
    "POST /jobs/{job_id}:preview-reorder": SUBMIT,
    "POST /jobs/{job_id}:reorder": SUBMIT,
    "POST /jobs/{job_id}:pause": SUBMIT,
    "POST /jobs/{job_id}:resume": SUBMIT,
    "POST /jobs/{job_id}:cancel": CANCEL,
    "POST /jobs/{job_id}:give-up": SUBMIT,
    "POST /projects/{slug}/experiments/{experiment_id}:move": MAINTAIN,
    "GET /projects": READ,
    "POST /projects": ADMIN,
    "GET /projects:deleted": ADMIN,
    "GET /projects/{slug}": READ,
    "PATCH /projects/{slug}": GOVERN,
    "POST /projects/{slug}:archive": GOVERN,
    "POST /projects/{slug}:restore": GOVERN,
    "DELETE /projects/{slug}": GOVERN,
    "POST /projects/{slug}:undelete": ADMIN,
    "GET /projects/{slug}/members": READ,
    "PUT /projects/{slug}/members/{user}": GOVERN,
    "DELETE /projects/{slug}/members/{user}": GOVERN,
    "GET /projects/{slug}/thresholds": READ,
    "PUT /projects/{slug}/thresholds/{threshold}": GOVERN,
    "DELETE /projects/{slug}/thresholds/{threshold}": GOVERN,
    "GET /audit": GOVERN,
    "GET /audit:export": GOVERN,
    "POST /series:query": READ,
    "GET /records:export": READ,
    "POST /statistics:aggregate": READ,
    "POST /runs:compare": READ,
    "GET /events": READ,
    "POST /events:stream": READ,
    "POST /events:poll": READ,
    "GET /artifacts/{artifact_id}": READ,
    "GET /artifacts/{artifact_id}/content": READ_OR_ATTEMPT,
    "GET /workers": READ,
    "GET /workers/{worker_id}": READ,
    "GET /usage": READ,
    "GET /usage/quotas": READ,
    "GET /usage:export": READ,
    "GET /pools": READ,
    "POST /pools": ADMIN,
    "GET /pools/{pool}": READ,
    "PATCH /pools/{pool}": ADMIN,
    "DELETE /pools/{pool}": ADMIN,
    "POST /pools/{pool}:pause": ADMIN,
    "POST /pools/{pool}:resume": ADMIN,
    "PUT /pools/{pool}/projects/{slug}": ADMIN,
    "GET /pools/{pool}/projects/{slug}/quotas": READ,
    "PATCH /pools/{pool}/projects/{slug}/quotas": ADMIN,
    "DELETE /pools/{pool}/projects/{slug}": ADMIN,
    "GET /pools/{pool}/estimates": READ,
    "GET /pools/{pool}/shares": READ,
    "GET /pools/{pool}/queue": READ,
    "GET /pools/{pool}/windows": READ,
    "POST /pools/{pool}/windows": ADMIN,
    "DELETE /pools/{pool}/windows/{window_id}": ADMIN,
    "GET /pools/{pool}/enrolment-tokens": ADMIN,
    "POST /pools/{pool}/enrolment-tokens": ADMIN,
    "DELETE /pools/{pool}/enrolment-tokens/{enrolment_id}": ADMIN,
    "GET /catalogue": READ,
    "POST /workers/{worker_id}:drain": ADMIN,
    "POST /workers/{worker_id}:undrain": ADMIN,
    "POST /workers/{worker_id}:forget": ADMIN,
    "POST /workers/{worker_id}:rotate-secret": ADMIN,
    "POST /workers": ENROL,
    "POST /workers/{worker_id}:heartbeat": OWN,
    "POST /leases": OWN,
    "POST /leases/{attempt_id}:adopt": OWN,
    "POST /leases/{attempt_id}:renew": ATTEMPT,
    "POST /leases/{attempt_id}:follow": ATTEMPT,
    "POST /leases/{attempt_id}:release": ATTEMPT,
    "POST /attempts/{attempt_id}/telemetry": ATTEMPT,
    "POST /attempts/{attempt_id}/artifacts": ATTEMPT,
    "PUT /attempts/{attempt_id}/artifacts/{artifact_id}": ATTEMPT,
}

ANSWERS = {
    "GET /records:export": 422,
    "GET /events": 400,
    "DELETE /projects/{slug}": 422,
    "DELETE /session": 204,
}
"""Answers of permitted calls that differ from those of `_answer`.

The calls have no body and no parameter, and name objects that do not exist; those of streams have a
bad cursor.
"""

EVERYTHING = frozenset(
    {READ, READ_OR_ATTEMPT, SUBMIT, CANCEL, MAINTAIN, GOVERN, ADMIN, MANAGE, PERSON, ANYONE}
)
"""What a user may do, apart from what only workers and attempts may."""

PERMITS: dict[str, frozenset[str] | set[str]] = {
    "anonymous": set(),
    "expired": set(),
    "revoked": set(),
    "reader": {READ, READ_OR_ATTEMPT, ANYONE},
    "submitter": {SUBMIT, CANCEL, ANYONE},
    "admin_only": EVERYTHING,
    "user": EVERYTHING,
    "viewer": {READ, READ_OR_ATTEMPT, MANAGE, PERSON, ANYONE},
    "member": {READ, READ_OR_ATTEMPT, SUBMIT, CANCEL, MANAGE, PERSON, ANYONE},
    "service": {READ, READ_OR_ATTEMPT, SUBMIT, CANCEL, MANAGE, ANYONE},
    "maintainer": EVERYTHING - {ADMIN},
    "foreign": EVERYTHING - {ADMIN, PERSON},
    "administrator": EVERYTHING - {SUBMIT, MAINTAIN},
    "disabled": set(),
    "enrolment": {ENROL},
    "own_worker": {OWN, ENROL},
    "live_attempt": {ATTEMPT, READ_OR_ATTEMPT},
    "cookie": EVERYTHING,
}
NOBODY = {"anonymous", "expired", "revoked", "disabled"}
ENDS_LOGIN = {("DELETE", "/api/v1/session"), ("POST", "/api/v1/account:sign-out")}
OUTSIDERS = {"foreign", "administrator"}
"""Users who are no members of the project that requests name: it does not exist for them."""
OF_PROJECT = "?project={project}"
"""Query that limits a request to one project."""


@functools.cache
def _routes() -> list[tuple[str, str]]:
    found = [
        (method, context.path or "")
        for context in iter_route_contexts(create_app(Settings()).routes)
        for method in context.methods or ()
    ]
    assert len(found) > 40
    return sorted(found)


@functools.cache
def list_limited_routes() -> list[tuple[str, str]]:
    """Returns the routes that the query limits to one project, with that query."""
    return sorted(
        (method, f"{context.path}{OF_PROJECT}")
        for context in list_api_routes(create_app(Settings()))
        for method in context.methods or ()
        if may_be_limited(context)
    )


def _routes_with_needs() -> list[tuple[str, str, str]]:
    """Returns the routes of the table with their required credential, also limited to a project."""
    named = [
        (method, path, f"{method} {path.removeprefix('/api/v1').removesuffix(OF_PROJECT)}")
        for method, path in (*_routes(), *list_limited_routes())
    ]
    return [(method, path, NEEDS[name]) for method, path, name in named if name in NEEDS]


_IDS = (
    "experiment",
    "run",
    "job",
    "worker",
    "token",
    "artifact",
    "invitation",
    "user",
    "enrolment",
    "session",
)


def _with_unknown_ids(path: str) -> str:
    """Returns the path with IDs that do not exist, so that a permitted request changes nothing."""
    for name in _IDS:
        path = path.replace(f"{{{name}_id}}", f"no-{name}")
    path = path.replace("{pool}", "no-pool")
    return path.replace("{project}", "default").replace("{slug}", "no-project")


async def test_the_table_lists_exactly_the_applications_routes() -> None:
    there_are = {f"{method} {path.removeprefix('/api/v1')}" for method, path in _routes()}
    assert there_are == set(NEEDS)
    assert set(ANSWERS) <= there_are
    assert len(list_limited_routes()) == 21


@functools.cache
def _routes_with_body() -> set[tuple[str, str]]:
    """Returns method and path of the routes that require a JSON body."""
    return {
        (method.upper(), path)
        for path, operations in read_paths().items()
        for method, operation in operations.items()
        if operation.get("requestBody", {}).get("required")
        and "application/json" in operation["requestBody"]["content"]
    }


def _answer(method: str, path: str) -> int:
    """Returns the status of a permitted call without a body, with IDs that do not exist."""
    path = path.removesuffix(OF_PROJECT)
    said = ANSWERS.get(f"{method} {path.removeprefix('/api/v1')}")
    if said is not None:
        return said
    if (method, path) in _routes_with_body():
        return 415
    return 404 if "{" in path.replace("{project}", "") else 200


@pytest.mark.parametrize("who", [name for name in PERMITS if name != "cookie"])
async def test_every_route_accepts_exactly_the_tokens_of_the_table(
    shared: AppServer, who: str
) -> None:
    wrong = []
    async with shared.client(who) as client:
        for method, path, need in _routes_with_needs():
            url = _with_unknown_ids(path).replace("{attempt_id}", shared.names["live_attempt"])
            answer = await client.request(method, url, headers={"Last-Event-ID": "x"})
            said = _unexpected(who, need, (method, path), answer.status_code)
            if said is not None:
                wrong.append(f"{method} {path}: {said}")
    assert wrong == []


async def test_the_number_of_tested_cells_is_printed() -> None:
    cells = len(PERMITS) * len(_routes_with_needs())
    kinds = f"{len(PERMITS)} kinds of callers x {len(_routes_with_needs())} routes"
    print(f"{kinds} = {cells} cells")  # noqa: T201 - the size of the table is to be seen
    assert cells > 1_000


def _unexpected(who: str, need: str, route: tuple[str, str], status: int) -> str | None:
    if "{project}" in route[1] and who in OUTSIDERS:
        expected = 404
    elif need == PUBLIC or need in PERMITS[who]:
        expected = _answer(*route)
    else:
        expected = 401 if who in NOBODY else 403
    return None if status == expected else f"{status} where {who} should get {expected}"


async def test_changes_with_a_login_but_no_csrf_token_are_refused(shared: AppServer) -> None:
    client, csrf = await shared.browser()
    wrong = []
    async with contextlib.aclosing(client):
        ours = {"Origin": ORIGIN, CSRF_HEADER: csrf, "Last-Event-ID": "x"}
        theirs = {
            "Origin": "http://evil.example",
            "Last-Event-ID": "x",
            "Sec-Fetch-Site": "cross-site",
        }
        for method, path, need in _routes_with_needs():
            if (method, path) in ENDS_LOGIN:
                continue  # test_access.py and test_account.py have these
            url = _with_unknown_ids(path).replace("{attempt_id}", "no-attempt")
            with_it = (await client.request(method, url, headers=ours)).status_code
            without = (await client.request(method, url, headers=theirs)).status_code
            if (said := _unexpected("cookie", need, (method, path), with_it)) is not None:
                wrong.append(f"{method} {path}: {said}")
            if method != "GET" and without != 403:
                wrong.append(f"{method} {path}: {without} without the CSRF token")
    assert wrong == []


async def test_users_of_another_project_cannot_read_or_change_resources(shared: AppServer) -> None:
    before = await shared.count_rows()
    ours = {name: shared.names[f"live_{name}"] for name in ("run", "job", "attempt")}
    ours |= {"experiment": shared.names["experiment"], "worker": shared.names["worker"]}
    ours |= {
        "token": shared.names["token"],
        "artifact": "no-artifact",
        "invitation": "no-invitation",
        "user": "no-user",
        "session": "no-session",
        "enrolment": "no-enrolment",
    }
    wrong = []
    async with shared.client("foreign") as client:
        for method, path, need in _routes_with_needs():
            url = path.replace("{project}", "default").replace("{slug}", "default")
            url = url.replace("{pool}", "default")
            for name, value in ours.items():
                url = url.replace(f"{{{name}_id}}", value)
            answer = await client.request(method, url, headers={"Last-Event-ID": "x"})
            if need in {ENROL, OWN, ATTEMPT, ADMIN, PERSON}:
                wrong += [f"{method} {path}: {answer.status_code}"] * (answer.status_code != 403)
            elif "{" in path and not (method != "GET" and answer.status_code in {415, 422}):
                wrong += [f"{method} {path}: {answer.status_code}"] * (answer.status_code != 404)
            if any(value in answer.text for value in ours.values()):
                wrong.append(f"{method} {path}: names ours")
    assert wrong == []
    assert await shared.count_rows() == before


@pytest.mark.parametrize("who", ["lost_attempt", "finished_attempt", "live_attempt"])
async def test_an_attempt_token_is_refused_for_another_attempt(shared: AppServer, who: str) -> None:
    other = "finished_attempt" if who == "live_attempt" else "live_attempt"
    async with shared.client(who) as client:
        for method, path, need in _routes_with_needs():
            if "{attempt_id}" in path and need == ATTEMPT:
                url = _with_unknown_ids(path).replace("{attempt_id}", shared.names[other])
                answer = await client.request(method, url)
                assert (answer.status_code, answer.json()["code"]) == (403, "other_attempt"), path


async def test_a_worker_secret_is_refused_for_another_worker(shared: AppServer) -> None:
    async with shared.client("other_worker") as client:
        beat = await client.post(f"/api/v1/workers/{shared.names['worker']}:heartbeat", json={})
        claim = {"job_id": shared.names["queued_job"], "expected_attempt": 1, "slot": 9}
        claimed = await client.post(
            "/api/v1/leases", json={**claim, "worker_id": shared.names["worker"]}
        )
        assert {beat.status_code, claimed.status_code} <= {403, 404}
        for method, path, need in _routes_with_needs():
            if need not in {OWN, ENROL, PUBLIC}:
                url = _with_unknown_ids(path).replace("{attempt_id}", shared.names["live_attempt"])
                assert (await client.request(method, url)).status_code == 403, path
