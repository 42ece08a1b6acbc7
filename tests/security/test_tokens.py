"""Tokens are created only by a user's token or login, and revoked together with it."""

import contextlib
from datetime import datetime
from typing import Any

import httpx
import pytest

from tests.app.api.serving import ORIGIN, AppServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKENS = "/api/v1/tokens"


async def _make(client: httpx.AsyncClient, *scopes: str, **request: Any) -> dict[str, Any]:
    answer = await client.post(TOKENS, json={"name": "child", "scopes": scopes, **request})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def _use(shared: AppServer, made: dict[str, Any]) -> httpx.AsyncClient:
    shared.tokens[made["id"]] = made["secret"]
    return shared.client(made["id"])


@pytest.mark.parametrize("who", ["reader", "submitter", "worker", "live_attempt"])
async def test_a_token_without_the_admin_scope_cannot_manage_tokens(
    shared: AppServer, who: str
) -> None:
    """Regression: a read or worker token could list and revoke its user's admin tokens."""
    async with shared.client("user") as owner, shared.client(who) as client:
        victim = await _make(owner, "read")
        assert (await client.get(TOKENS)).status_code == 403
        assert (
            await client.post(TOKENS, json={"name": "x", "scopes": ["read"]})
        ).status_code == 403
        assert (await client.delete(f"{TOKENS}/{victim['id']}")).status_code == 403
        async with _use(shared, victim) as still:
            assert (await still.get("/api/v1/session")).status_code == 200


async def test_a_created_token_expires_no_later_than_its_creator(shared: AppServer) -> None:
    """Regression: a one-day token could create a token without expiry."""
    async with shared.client("user") as owner:
        parent = await _make(owner, "admin", expires_in_days=1)
    async with _use(shared, parent) as client:
        for days in (2, None):
            answer = await client.post(
                TOKENS, json={"name": "x", "scopes": ["read"], "expires_in_days": days}
            )
            assert answer.status_code == 422, days
            assert answer.json()["errors"][0]["pointer"] == "/expires_in_days"
        child = await _make(client, "read")
        assert child["parent_id"] == parent["id"]
        assert child["expires_at"] == parent["expires_at"]
        again = await _make(client, "admin", expires_in_days=1)
        assert datetime.fromisoformat(again["expires_at"]) <= datetime.fromisoformat(
            parent["expires_at"]
        )


async def test_a_created_token_has_no_scope_that_its_creator_lacks(shared: AppServer) -> None:
    client, csrf = await shared.browser()
    async with contextlib.aclosing(client):
        client.headers.update({"Origin": ORIGIN, "X-CSRF-Token": csrf})
        assert (await _make(client, "read", "worker"))["parent_id"] is None
    async with shared.client("admin_only") as limited:
        assert {*(await _make(limited, "read", "submit"))["scopes"]} == {"read", "submit"}


async def test_revoking_a_token_revokes_the_tokens_it_created_except_workers(
    shared: AppServer,
) -> None:
    async with shared.client("user") as owner:
        parent = await _make(owner, "read", "admin")
        async with _use(shared, parent) as client:
            child = await _make(client, "admin")
            worker = await _make(client, "worker")
        async with _use(shared, child) as client:
            grandchild = await _make(client, "read")
        unrelated = await _make(owner, "read")
        assert (await owner.delete(f"{TOKENS}/{parent['id']}")).status_code == 204
    alive = {}
    for name, made in {
        "parent": parent,
        "child": child,
        "grandchild": grandchild,
        "unrelated": unrelated,
    }.items():
        async with _use(shared, made) as client:
            alive[name] = (await client.get("/api/v1/session")).status_code == 200
    assert alive == {"parent": False, "child": False, "grandchild": False, "unrelated": True}
    async with _use(shared, worker) as machine:
        assert (await machine.post("/api/v1/workers", json={})).status_code == 422


async def test_a_token_permits_no_more_than_its_users_present_role(shared: AppServer) -> None:
    """Regression: an admin who became a viewer kept the rights of an admin's token."""
    from sqlalchemy import update

    from app.db.models import MembershipRow

    project, user = shared.world.project_id, shared.world.other.user_id
    async with shared.database.write() as session:
        from tests.app.api.serving import _token

        shared.tokens["demoted"] = await _token(
            session, project, user, "demoted", "read submit admin"
        )
        whose = (MembershipRow.project_id == project, MembershipRow.user_id == user)
        await session.execute(update(MembershipRow).where(*whose).values(role="viewer"))
    async with shared.client("demoted") as client:
        assert (await client.get("/api/v1/session")).json()["scopes"] == ["read"]
        assert (await client.get(TOKENS)).status_code == 403
