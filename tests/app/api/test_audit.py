"""Entries of the audit log that requests write.

An entry names the user, the address and the credential of its request.
"""

import contextlib
import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from app.db.models import AuditRow
from app.domain.login_limits import LoginLimits
from app.domain.secrets import generate_secret
from app.services.audit.refusals import Refusals
from palestra.contract.audit import AuditEntry
from palestra.contract.documents import hash_document
from tests.app.api.serving import ORIGIN, AppServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROXY = "127.0.0.1"
"""Address from which the requests of these tests come."""


async def read_entries(served: AppServer, action: str) -> Sequence[AuditRow]:
    """Returns the entries of an action, the oldest first."""
    query = select(AuditRow).where(AuditRow.action == action).order_by(AuditRow.id)
    async with served.database.read() as session:
        return (await session.scalars(query)).all()


@pytest.fixture
def server_behind_proxy(shared: AppServer) -> Iterator[AppServer]:
    """The server, with the address from which tests send requests as a trusted proxy."""
    state = shared.app.state
    settings = state.settings
    state.settings = settings.model_copy(update={"trusted_proxies": (PROXY,)})
    yield shared
    state.settings = settings


async def test_a_change_names_person_credential_and_address(server_behind_proxy: AppServer) -> None:
    served = server_behind_proxy
    client, csrf = await served.browser()
    headers = {"Origin": ORIGIN, "X-CSRF-Token": csrf, "X-Forwarded-For": "6.6.6.6, 2001:db8::9"}
    async with contextlib.aclosing(client):
        made = await client.post(
            "/api/v1/tokens", json={"name": "t", "scopes": ["read"]}, headers=headers
        )
        assert made.status_code == 201, made.text
    login = (await read_entries(served, "login.open"))[-1]
    row = (await read_entries(served, "token.create"))[-1]
    admin = served.world.admin.user_id
    assert (login.user_id, login.address, login.credential) == (admin, PROXY, None)
    assert (row.object_type, row.object_id) == ("token", made.json()["id"])
    assert (row.actor, row.user_id) == (f"user:{admin}", admin)
    assert row.credential == login.object_id
    assert row.address == "2001:db8::9", "the proxy's own words, not what the client wrote"


async def test_a_token_and_a_worker_are_named_as_credentials(
    server_behind_proxy: AppServer,
) -> None:
    served = server_behind_proxy
    worker = served.names["worker"]
    async with served.client("user") as client:
        assert (await client.post(f"/api/v1/workers/{worker}:drain")).status_code == 200
    drained = (await read_entries(served, "worker.drain"))[-1]
    assert drained.actor == f"token:{drained.credential}"
    assert drained.user_id == served.world.admin.user_id
    async with served.client("own_worker") as client:
        body = {"live_attempts": []}
        answer = await client.post(f"/api/v1/workers/{worker}:heartbeat", json=body)
        assert answer.status_code == 200, answer.text
    async with served.client("live_attempt") as client:
        attempt = served.names["live_attempt"]
        answer = await client.post(f"/api/v1/leases/{attempt}:renew", json={})
        assert answer.status_code == 200, answer.text
    moved = (await read_entries(served, "job.move"))[-1]
    assert moved.user_id is None


async def read_page(served: AppServer, who: str = "user", **query: Any) -> list[AuditEntry]:
    """Returns the entries of one page of a search."""
    async with served.client(who) as client:
        answer = await client.get("/api/v1/audit", params=query)
    assert answer.status_code == 200, answer.text
    return [AuditEntry.model_validate(item) for item in answer.json()["items"]]


async def read_all_pages(served: AppServer, who: str = "user", **query: Any) -> list[AuditEntry]:
    """Returns the entries of all pages of a search."""
    found: list[AuditEntry] = []
    cursor: str | None = None
    async with served.client(who) as client:
        while True:
            pages = query if cursor is None else {**query, "cursor": cursor}
            answer = (await client.get("/api/v1/audit", params=pages)).json()
            found += [AuditEntry.model_validate(item) for item in answer["items"]]
            cursor = answer["next_cursor"]
            if cursor is None:
                return found


async def test_pages_of_a_search_hold_every_entry_that_the_caller_may_read_once(
    shared: AppServer,
) -> None:
    """An administrator of the server reads all entries, a maintainer those of the project."""
    async with shared.database.read() as session:
        rows = (await session.scalars(select(AuditRow).order_by(AuditRow.id.desc()))).all()
    assert [entry.id for entry in await read_all_pages(shared, limit=7)] == [row.id for row in rows]
    mine = [row.id for row in rows if row.project_id == shared.world.project_id]
    assert len(mine) < len(rows), "there are entries of the other project and of none"
    assert [entry.id for entry in await read_all_pages(shared, "maintainer", limit=7)] == mine


async def test_a_search_finds_by_person_object_action_time_and_outcome(shared: AppServer) -> None:
    world = shared.world
    admin = await read_all_pages(shared, user=world.admin.user_id)
    assert admin
    assert {(entry.user_id, entry.user) for entry in admin} == {(world.admin.user_id, "admin")}
    assert await read_all_pages(shared, user="admin") == admin
    assert await read_all_pages(shared, user="nobody") == []
    job = shared.names["queued_job"]
    moves = await read_all_pages(shared, object_type="job", object_id=job)
    assert all((entry.object_type, entry.object_id) == ("job", job) for entry in moves)
    tokens = await read_all_pages(shared, action="token.")
    assert {entry.action for entry in tokens} == {"token.create", "token.revoke"}
    assert {entry.action for entry in await read_all_pages(shared, action="token.rev")} == {
        "token.revoke"
    }
    assert await read_all_pages(shared, action="token%") == []
    for outcome in ("allowed", "refused"):
        assert {entry.outcome for entry in await read_all_pages(shared, outcome=outcome)} <= {
            outcome
        }
    times = sorted({entry.at for entry in await read_all_pages(shared)})
    middle = times[len(times) // 2]
    before = await read_all_pages(shared, until=middle.isoformat())
    after = await read_all_pages(shared, since=middle.isoformat())
    assert before
    assert all(entry.at < middle for entry in before)
    assert all(entry.at >= middle for entry in after)
    assert len(before) + len(after) == len(await read_all_pages(shared))
    east = (middle + timedelta(hours=5)).isoformat().replace("+00:00", "+05:00")
    assert await read_all_pages(shared, since=east) == after


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ({"since": "2026-03-01"}, "query/since"),
        ({"since": "2026-03-01T12:00:00"}, "query/since"),
        ({"since": "1770000000"}, "query/since"),
        ({"until": "2026-02-30T12:00:00Z"}, "query/until"),
        ({"until": "10000-01-01T12:00:00Z"}, "query/until"),
        ({"outcome": "perhaps"}, "query/outcome"),
        ({"action": "a" * 65}, "query/action"),
        ({"user": "a" * 65}, "query/user"),
        ({"object_id": "a" * 201}, "query/object_id"),
        ({"limit": "0"}, "query/limit"),
        ({"cursor": "x"}, "query/cursor"),
        ({"actor": "x"}, "query/actor"),
    ],
    ids=str,
)
async def test_a_wrong_parameter_is_named(
    shared: AppServer, query: dict[str, str], pointer: str
) -> None:
    async with shared.client("user") as client:
        for path in ("/api/v1/audit", "/api/v1/audit:export"):
            if path.endswith("export") and pointer in {"query/limit", "query/cursor"}:
                continue
            answer = await client.get(path, params=query)
            assert answer.status_code == 422, answer.text
            assert answer.json()["errors"][0]["pointer"] == pointer


async def test_only_admins_read_the_log_of_their_project(shared: AppServer) -> None:
    for who in ("reader", "viewer", "member", "enrolment", "own_worker", "live_attempt"):
        async with shared.client(who) as client:
            for path in ("/api/v1/audit", "/api/v1/audit:export"):
                assert (await client.get(path)).status_code == 403
    foreign = await read_page(shared, "foreign", limit=500)
    assert shared.world.project_id not in {entry.project_id for entry in foreign}


async def test_an_export_holds_what_the_hashes_are_computed_from(shared: AppServer) -> None:
    async with shared.client("user") as client:
        answer = await client.get("/api/v1/audit:export")
        assert answer.headers["content-type"].startswith("application/jsonl")
        assert answer.headers["content-disposition"] == 'attachment; filename="audit.jsonl"'
        tokens = await client.get("/api/v1/audit:export", params={"action": "token."})
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [line["id"] for line in lines] == [
        entry.id for entry in reversed(await read_all_pages(shared, limit=500))
    ]
    for line in lines:
        content = {name: value for name, value in line.items() if value is not None}
        content.pop("user", None)
        digest = content.pop("hash")
        since = datetime.fromisoformat(content["at"]) - datetime.fromisoformat(
            "1970-01-01T00:00:00+00:00"
        )
        assert hash_document({**content, "at": since // timedelta(microseconds=1)}) == digest
    wanted = [line for line in lines if line["action"].startswith("token.")]
    assert [json.loads(line) for line in tokens.text.splitlines()] == wanted


def begin_counting(served: AppServer) -> None:
    """Starts a new count of refusals; only `flush_and_read` writes it to the log."""
    served.app.state.refusals = Refusals()


async def flush_and_read(served: AppServer) -> Sequence[AuditRow]:
    """Writes the counted refusals to the log; returns the entries since `begin_counting`."""
    query = select(AuditRow).where(AuditRow.outcome == "refused").order_by(AuditRow.id)
    async with served.database.read() as session:
        before = {row.id for row in await session.scalars(query)}
    await served.app.state.refusals.flush(served.database, everything=True)
    async with served.database.read() as session:
        return [row for row in await session.scalars(query) if row.id not in before]


async def test_refused_requests_are_counted_by_credential_and_route(shared: AppServer) -> None:
    begin_counting(shared)
    job, run = shared.names["queued_job"], shared.names["live_run"]
    async with shared.client("reader") as client:
        for _ in range(5):
            assert (await client.post(f"/api/v1/jobs/{job}:cancel")).status_code == 403
        assert (await client.post("/api/v1/jobs/job_other:cancel")).status_code == 403
        assert (await client.get("/api/v1/audit")).status_code == 403
    for who, status in (("revoked", 401), ("expired", 401), ("foreign", 404)):
        async with shared.client(who) as client:
            assert (await client.get(f"/api/v1/runs/{run}")).status_code == status
    async with shared.client() as client:
        assert (await client.get("/api/v1/runs")).status_code == 401
        for secret in ("plr_x", generate_secret("plr")):
            headers = {"Authorization": f"Bearer {secret}"}
            assert (await client.get("/api/v1/runs", headers=headers)).status_code == 401
    found = await flush_and_read(shared)
    assert [(row.object_id, row.code, row.count) for row in found] == [
        ("POST /jobs/{job_id}:cancel", "missing_scope", 6),
        ("GET /audit", "missing_scope", 1),
        ("GET /runs/{run_id}", "unauthenticated", 1),
        ("GET /runs/{run_id}", "unauthenticated", 1),
    ]
    assert found[2].credential == shared.names["token"]
    assert {row.user_id for row in found} == {shared.world.admin.user_id}
    assert {row.address for row in found} == {"127.0.0.1"}
    shown = await read_all_pages(shared, outcome="refused", object_type="request")
    assert [entry.id for entry in shown[:4]] == [row.id for row in reversed(found)]


async def test_a_secret_of_before_a_rotation_is_named_once_it_has_ended(shared: AppServer) -> None:
    """Regression: the log had no entry about programs that continued to use the former secret."""
    tokens = "/api/v1/tokens"
    async with shared.client("user") as owner:
        made = (await owner.post(tokens, json={"name": "old", "scopes": ["read"]})).json()
        rotated = await owner.post(f"{tokens}/{made['id']}:rotate", json={"overlap_hours": 0})
        assert rotated.status_code == 200
    begin_counting(shared)
    headers = {"Authorization": f"Bearer {made['secret']}"}
    async with shared.client() as client:
        assert (await client.get("/api/v1/runs", headers=headers)).status_code == 401
    assert [row.credential for row in await flush_and_read(shared)] == [made["id"]]


async def test_a_forged_change_names_the_login_that_was_used(shared: AppServer) -> None:
    begin_counting(shared)
    client, csrf = await shared.browser()
    async with contextlib.aclosing(client):
        wrong = {"Origin": "http://evil.example", "X-CSRF-Token": csrf}
        for headers in (wrong, {"Origin": ORIGIN}):
            assert (await client.delete("/api/v1/session", headers=headers)).status_code == 403
        found = await flush_and_read(shared)
        good = {"Origin": ORIGIN, "X-CSRF-Token": csrf}
        assert (await client.delete("/api/v1/session", headers=good)).status_code == 204
        assert (await client.get("/api/v1/session")).status_code == 401
    login = (await read_entries(shared, "login.close"))[-1]
    assert [(row.code, row.credential) for row in found] == [
        ("cross_site", login.object_id),
        ("csrf", login.object_id),
    ]
    assert (login.credential, login.user_id) == (login.object_id, shared.world.admin.user_id)


async def test_refused_logins_name_the_account_and_never_what_was_typed(shared: AppServer) -> None:
    begin_counting(shared)
    shared.app.state.login_limits = LoginLimits()
    async with shared.client() as client:
        for user in ("admin", "admin", "hunter2 secret"):
            body = {"user": user, "password": "not this one at all"}
            answer = await client.post("/api/v1/session", json=body, headers={"Origin": ORIGIN})
            assert answer.status_code == 401, answer.text
        link = {"code": generate_secret("pll")}
        answer = await client.post("/api/v1/session:redeem", json=link, headers={"Origin": ORIGIN})
        assert answer.status_code == 401, answer.text
        assert "user_id" not in answer.text
    found = await flush_and_read(shared)
    admin = shared.world.admin.user_id
    assert [(row.action, row.object_id, row.user_id, row.code, row.count) for row in found] == [
        ("login.refuse", admin, admin, "wrong_login", 2),
        ("login.refuse", "unknown", None, "wrong_login", 1),
        ("login.refuse", "unknown", None, "link_used", 1),
    ]
    assert "hunter2" not in str([vars(row) for row in found])
