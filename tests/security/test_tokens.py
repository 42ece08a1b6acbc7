"""Tokens are created only by a user's token or login, and revoked together with it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import httpx
import pytest

from tests.app.api.serving import ORIGIN, AppServer
from tests.support.server_fixture import advance_clock, make_definition
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

both_databases = pytest.mark.both_databases(
    "Tokens are locked on PostgreSQL while others are created with them.",
    of=("app.db.repositories.tokens",),
)

TOKENS = "/api/v1/tokens"


async def _make_token(client: httpx.AsyncClient, *scopes: str, **request: Any) -> dict[str, Any]:
    answer = await client.post(TOKENS, json={"name": "child", "scopes": scopes, **request})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def _open_client(shared: AppServer, made: dict[str, Any]) -> httpx.AsyncClient:
    shared.tokens[made["id"]] = made["secret"]
    return shared.client(made["id"])


@pytest.mark.parametrize("who", ["reader", "submitter", "enrolment", "live_attempt"])
async def test_a_token_without_the_admin_scope_cannot_manage_tokens(
    shared: AppServer, who: str
) -> None:
    """Regression: a read or worker token could list and revoke its user's admin tokens."""
    async with shared.client("user") as owner, shared.client(who) as client:
        victim = await _make_token(owner, "read")
        assert (await client.get(TOKENS)).status_code == 403
        assert (
            await client.post(TOKENS, json={"name": "x", "scopes": ["read"]})
        ).status_code == 403
        assert (await client.delete(f"{TOKENS}/{victim['id']}")).status_code == 403
        async with _open_client(shared, victim) as still:
            assert (await still.get("/api/v1/session")).status_code == 200


async def test_a_created_token_expires_no_later_than_its_creator(shared: AppServer) -> None:
    """Regression: a one-day token could create a token without expiry."""
    async with shared.client("user") as owner:
        parent = await _make_token(owner, "admin", expires_in_days=1)
    async with _open_client(shared, parent) as client:
        for days in (2, None):
            answer = await client.post(
                TOKENS, json={"name": "x", "scopes": ["read"], "expires_in_days": days}
            )
            assert answer.status_code == 422, days
            assert answer.json()["errors"][0]["pointer"] == "/expires_in_days"
        child = await _make_token(client, "read")
        assert child["parent_id"] == parent["id"]
        assert child["expires_at"] == parent["expires_at"]
        again = await _make_token(client, "admin", expires_in_days=1)
        assert datetime.fromisoformat(again["expires_at"]) <= datetime.fromisoformat(
            parent["expires_at"]
        )


async def test_a_created_token_has_no_scope_that_its_creator_lacks(shared: AppServer) -> None:
    client, csrf = await shared.browser()
    async with contextlib.aclosing(client):
        client.headers.update({"Origin": ORIGIN, "X-CSRF-Token": csrf})
        assert (await _make_token(client, "read", "admin"))["parent_id"] is None
    async with shared.client("admin_only") as limited:
        assert {*(await _make_token(limited, "read", "submit"))["scopes"]} == {"read", "submit"}


@pytest.mark.parametrize("scopes", [["worker"], ["read", "worker"]])
async def test_a_token_that_enrols_workers_is_refused_with_the_way_to_a_pools_token(
    shared: AppServer, scopes: list[str]
) -> None:
    async with shared.client("user") as client, _log_in_browser(shared) as login:
        count = len((await client.get(f"{TOKENS}?limit=500")).json()["items"])
        for caller in (client, login):
            body = {"name": "w", "scopes": scopes, "expires_in_days": None}
            answer = await caller.post(TOKENS, json=body)
            assert (answer.status_code, answer.json()["code"]) == (422, "enrolment_token_needed")
            (error,) = answer.json()["errors"]
            assert error["pointer"] == "/scopes"
            assert "palestra pools token POOL" in error["message"]
        assert len((await client.get(f"{TOKENS}?limit=500")).json()["items"]) == count


async def test_revoking_a_token_revokes_the_tokens_it_created(shared: AppServer) -> None:
    async with shared.client("user") as owner:
        parent = await _make_token(owner, "read", "admin")
        async with _open_client(shared, parent) as client:
            child = await _make_token(client, "admin")
        async with _open_client(shared, child) as client:
            grandchild = await _make_token(client, "read")
        unrelated = await _make_token(owner, "read")
        assert (await owner.delete(f"{TOKENS}/{parent['id']}")).status_code == 204
    alive = {}
    for name, made in {
        "parent": parent,
        "child": child,
        "grandchild": grandchild,
        "unrelated": unrelated,
    }.items():
        async with _open_client(shared, made) as client:
            alive[name] = (await client.get("/api/v1/session")).status_code == 200
    assert alive == {"parent": False, "child": False, "grandchild": False, "unrelated": True}


async def test_a_token_permits_no_more_than_its_users_present_role(shared: AppServer) -> None:
    """Regression: an admin who became a viewer kept the rights of an admin's token."""
    from sqlalchemy import update

    from app.db.models import MembershipRow

    project, user = shared.world.project_id, shared.world.other.user_id
    async with shared.database.write() as session:
        from tests.app.api.serving import _issue_token

        shared.tokens["demoted"] = await _issue_token(
            session, project, user, "demoted", "read submit admin"
        )
        whose = (MembershipRow.project_id == project, MembershipRow.user_id == user)
        await session.execute(update(MembershipRow).where(*whose).values(role="viewer"))
    async with shared.client("demoted") as client:
        (own,) = (await client.get("/api/v1/session")).json()["projects"]
        assert (own["role"], own["permissions"]) == ("viewer", ["project.read"])
        submitted = await client.post("/api/v1/experiments", json={"definition": make_definition()})
        assert (submitted.status_code, submitted.json()["code"]) == (403, "missing_permission")


async def _make_token_of_default(shared: AppServer, *scopes: str) -> dict[str, Any]:
    async with shared.client("user") as owner:
        return await _make_token(owner, *scopes, project="default")


async def test_a_child_of_a_token_of_one_project_is_bound_to_the_same_project(
    shared: AppServer,
) -> None:
    parent = await _make_token_of_default(shared, "read", "admin")
    async with _open_client(shared, parent) as client:
        child = await _make_token(client, "read", "admin")
        assert (parent["project"], child["project"]) == ("default", "default")
        body = {"name": "x", "scopes": ["read"], "project": "elsewhere"}
        assert (await client.post(TOKENS, json=body)).status_code == 404
    async with _open_client(shared, child) as client:
        assert (await client.get("/api/v1/projects/elsewhere")).status_code == 404
        assert (await client.post("/api/v1/projects", json={"name": "x"})).status_code == 403


async def test_a_token_without_an_end_needs_the_setting(shared: AppServer) -> None:
    body = {"name": "x", "scopes": ["read"], "expires_in_days": None}
    client, csrf = await shared.browser()
    async with contextlib.aclosing(client):
        client.headers.update({"Origin": ORIGIN, "X-CSRF-Token": csrf})
        answer = await client.post(TOKENS, json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, "end_needed")
        assert (await _make_token(client, "read"))["expires_at"] is not None
        settings = shared.app.state.settings
        shared.app.state.settings = settings.model_copy(update={"tokens_without_end": True})
        try:
            assert (await client.post(TOKENS, json=body)).json()["expires_at"] is None
        finally:
            shared.app.state.settings = settings


async def _rotate_token(client: httpx.AsyncClient, token_id: str, **body: Any) -> httpx.Response:
    return await client.post(f"{TOKENS}/{token_id}:rotate", json=body)


async def _is_accepted(shared: AppServer, made: dict[str, Any], secret: str) -> bool:
    async with _open_client(shared, {**made, "secret": secret}) as client:
        return (await client.get("/api/v1/session")).status_code == 200


@both_databases
async def test_both_secrets_are_valid_during_the_overlap_and_no_longer(shared: AppServer) -> None:
    made = await _make_token_of_default(shared, "read", "admin")
    async with _open_client(shared, made) as client:
        first = (await _rotate_token(client, made["id"], overlap_hours=1)).json()
    assert first["secret"] != made["secret"]
    assert first["previous_until"] is not None
    assert first["expires_at"] == made["expires_at"]
    assert await _is_accepted(shared, made, made["secret"])
    assert await _is_accepted(shared, made, first["secret"])
    advance_clock(3_601)
    try:
        assert not await _is_accepted(shared, made, made["secret"])
        assert await _is_accepted(shared, made, first["secret"])
    finally:
        advance_clock(-3_601)
    async with _open_client(shared, first) as client:
        second = (await _rotate_token(client, made["id"], overlap_hours=0)).json()
    assert not await _is_accepted(shared, made, made["secret"]), "an older secret ends at once"
    assert not await _is_accepted(shared, made, first["secret"]), "no overlap was chosen"
    assert await _is_accepted(shared, made, second["secret"])
    async with shared.client("user") as owner:
        assert (await owner.delete(f"{TOKENS}/{made['id']}")).status_code == 204
        client, csrf = await shared.browser()
        async with contextlib.aclosing(client):
            client.headers.update({"Origin": ORIGIN, "X-CSRF-Token": csrf})
            answer = await _rotate_token(client, made["id"])
    assert (answer.status_code, answer.json()["code"]) == (409, "token_ended")
    assert not await _is_accepted(shared, made, second["secret"])


async def test_a_token_rotates_itself_and_its_children_but_no_token_with_more_rights(
    shared: AppServer,
) -> None:
    """Otherwise a token of one project could replace the secret of the token that created it."""
    victim = await _make_token_of_default(shared, "read", "submit", "admin")
    bound = await _make_token_of_default(shared, "read", "admin")
    async with _open_client(shared, bound) as client:
        answer = await _rotate_token(client, victim["id"])
        assert (answer.status_code, answer.json()["code"]) == (403, "not_yours")
        child = await _make_token(client, "read")
        assert (await _rotate_token(client, child["id"])).status_code == 200
        assert (await _rotate_token(client, bound["id"])).status_code == 200
    assert await _is_accepted(shared, victim, victim["secret"])


async def test_a_rotated_child_expires_no_later_than_its_parent(shared: AppServer) -> None:
    async with shared.client("user") as owner:
        parent = await _make_token(owner, "read", "admin", expires_in_days=2)
    async with _open_client(shared, parent) as client:
        child = await _make_token(client, "read", expires_in_days=1)
        answer = await _rotate_token(client, child["id"], expires_in_days=9)
        assert (answer.status_code, answer.json()["code"]) == (422, "outlives_parent")
        longer = (await _rotate_token(client, child["id"], expires_in_days=2)).json()
    assert child["expires_at"] < longer["expires_at"] <= parent["expires_at"]


@both_databases
async def test_tokens_created_while_their_parent_is_revoked_are_revoked_too(
    shared: AppServer,
) -> None:
    """Regression: requests that were authenticated before the revocation left live children."""
    outlived = []
    for number in range(4):
        async with shared.client("user") as owner:
            parent = await _make_token(owner, "read", "admin")
            async with _open_client(shared, parent) as client:
                made: list[dict[str, Any]] = []
                creating = [_create_until_refused(client, made) for _ in range(3)]
                revoking = _revoke_after(owner, parent["id"], made, 4 * number)
                await asyncio.gather(*creating, revoking)
        outlived += [child for child in made if await _is_accepted(shared, child, child["secret"])]
    assert outlived == []


async def _create_until_refused(client: httpx.AsyncClient, made: list[dict[str, Any]]) -> None:
    for _ in range(10):
        answer = await client.post(TOKENS, json={"name": "child", "scopes": ["read"]})
        if answer.status_code != 201:
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
            return
        made.append(answer.json())


async def _revoke_after(
    owner: httpx.AsyncClient, token_id: str, made: list[dict[str, Any]], number: int
) -> None:
    """Revokes a token once it has made so many others."""
    await until(lambda: len(made) >= number)
    assert (await owner.delete(f"{TOKENS}/{token_id}")).status_code == 204


async def test_a_revocation_is_recorded_once_and_in_the_project_of_each_token(
    shared: AppServer,
) -> None:
    async with shared.client("user") as owner:
        parent = await _make_token(owner, "read", "admin")
        async with _open_client(shared, parent) as client:
            child = await _make_token(client, "read", project="default")
        for _ in range(2):
            assert (await owner.delete(f"{TOKENS}/{parent['id']}")).status_code == 204
        log = "/api/v1/audit?action=token.revoke&object_id="
        entries = {
            made["id"]: (await owner.get(f"{log}{made['id']}")).json()["items"]
            for made in (parent, child)
        }
    (of_parent,), (of_child,) = entries[parent["id"]], entries[child["id"]]
    assert (of_parent["project_id"], of_child["project_id"]) == (None, shared.world.project_id)
    assert of_child["actor"].startswith("token:")


@contextlib.asynccontextmanager
async def _log_in_browser(shared: AppServer) -> AsyncIterator[httpx.AsyncClient]:
    client, csrf = await shared.browser()
    async with contextlib.aclosing(client):
        client.headers.update({"Origin": ORIGIN, "X-CSRF-Token": csrf})
        yield client


async def test_a_token_gives_itself_no_longer_life(shared: AppServer) -> None:
    """Regression: a stolen token that a login had made could rotate itself for ten years."""
    async with _log_in_browser(shared) as owner:
        made = await _make_token(owner, "read", "admin", expires_in_days=2)
        async with _open_client(shared, made) as client:
            answer = await _rotate_token(client, made["id"], expires_in_days=4)
            assert (answer.status_code, answer.json()["code"]) == (422, "outlives_caller")
            same = (
                await _rotate_token(client, made["id"], expires_in_days=2, overlap_hours=1)
            ).json()
            assert same["expires_at"] == made["expires_at"]
            shorter = (await _rotate_token(client, made["id"], expires_in_days=1)).json()
            assert shorter["expires_at"] < made["expires_at"]
        longer = (await _rotate_token(owner, made["id"], expires_in_days=9)).json()
        assert longer["expires_at"] > made["expires_at"]


async def test_a_shorter_life_of_a_token_shortens_the_tokens_created_with_it(
    shared: AppServer,
) -> None:
    """Regression: a child went on after a rotation had given its parent an earlier end."""
    async with _log_in_browser(shared) as owner:
        parent = await _make_token(owner, "read", "admin", expires_in_days=60)
        async with _open_client(shared, parent) as client:
            child = await _make_token(client, "read", "admin", expires_in_days=50)
        async with _open_client(shared, child) as client:
            grandchild = await _make_token(client, "read", expires_in_days=40)
        end = (await _rotate_token(owner, parent["id"], expires_in_days=1)).json()["expires_at"]
        listed = (await owner.get(f"{TOKENS}?limit=500")).json()["items"]
    ends = {token["id"]: token["expires_at"] for token in listed}
    assert (ends[child["id"]], ends[grandchild["id"]]) == (end, end)


async def test_a_token_of_one_project_sees_and_ends_no_token_of_others(shared: AppServer) -> None:
    """Regression: such a token listed and revoked all tokens of its user."""
    async with shared.client("user") as owner:
        victim = await _make_token(owner, "read")
    bound = await _make_token_of_default(shared, "read", "admin")
    async with _open_client(shared, bound) as client:
        listed = (await client.get(f"{TOKENS}?limit=500")).json()["items"]
        assert bound["id"] in {token["id"] for token in listed}
        assert {token["project"] for token in listed} == {"default"}
        assert (await client.delete(f"{TOKENS}/{victim['id']}")).status_code == 404
        assert (await _rotate_token(client, victim["id"])).status_code == 404
    assert await _is_accepted(shared, victim, victim["secret"])
