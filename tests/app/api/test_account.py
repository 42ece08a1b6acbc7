"""One's own account: profile and browser logins."""

from typing import Any

import pytest
from sqlalchemy import select, update

from app.db.clock import db_now
from app.db.models import LoginSessionRow, TokenRow
from app.services.access import logins
from tests.app.api.account_browser import (
    ACCOUNT,
    PASSWORD,
    SESSIONS,
    browser,
    entries,
    fault,
    served,
)
from tests.app.api.serving import AppServer
from tests.app.api.test_users import add_person

__all__ = ["served"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_person_reads_and_changes_the_account(served: AppServer) -> None:
    user_id = await add_person(served, "emmy")
    async with served.client("emmy") as client:
        seen = (await client.get(ACCOUNT)).json()
        assert {key: seen[key] for key in ("id", "name", "display_name", "email")} == {
            "id": user_id,
            "name": "emmy",
            "display_name": "",
            "email": None,
        }
        assert [(one["slug"], one["role"]) for one in seen["projects"]] == [("default", "member")]
        assert (seen["is_admin"], seen["has_password"]) == (False, False)
        body = {"display_name": "Emmy N.", "email": "emmy@lab.org"}
        changed = (await client.patch(ACCOUNT, json=body)).json()
        assert {key: changed[key] for key in body} == body
        assert (await client.patch(ACCOUNT, json={"email": None})).json()["email"] is None
        assert (await client.patch(ACCOUNT, json={})).json()["display_name"] == "Emmy N."
        for wrong, pointer in (
            ({"email": "nobody"}, "/email"),
            ({"display_name": "two\nlines"}, "/display_name"),
            ({"display_name": " "}, "/display_name"),
            ({"is_admin": True}, "/is_admin"),
            ({"name": "noether"}, "/name"),
        ):
            assert fault(await client.patch(ACCOUNT, json=wrong)) == (
                422,
                "invalid_document",
                pointer,
            )
    changes = [data for action, data in await entries(served, user_id) if action == "user.change"]
    assert changes == [body, {"email": None}]


async def test_only_persons_have_an_account(served: AppServer) -> None:
    """Service accounts, tokens of one project, and tokens of lesser scopes are refused."""
    expected = {
        "service": "person_needed",
        "foreign": "person_needed",
        "reader": "missing_scope",
        "enrolment": "missing_scope",
        "live_attempt": "missing_scope",
        "own_worker": "missing_scope",
    }
    for who, code in expected.items():
        async with served.client(who) as client:
            for method, path in (
                ("GET", ACCOUNT),
                ("PATCH", ACCOUNT),
                ("PUT", PASSWORD),
                ("GET", SESSIONS),
                ("POST", f"{ACCOUNT}:sign-out"),
            ):
                answer = await client.request(method, path, json={})
                assert (answer.status_code, answer.json()["code"]) == (403, code), (who, path)


async def test_logins_are_listed_with_browser_address_and_use(served: AppServer) -> None:
    user_id = await add_person(served, "grace")
    curl = "curl/8.5.0"
    async with (
        browser(served, user_id) as one,
        browser(served, user_id, agent=curl) as other,
    ):
        listed = (await one.client.get(SESSIONS)).json()["items"]
        assert [item["browser"] for item in listed] == ["curl", "Firefox on Linux"]
        assert [item["is_present"] for item in listed] == [False, True]
        assert {item["address"] for item in listed} == {"127.0.0.1"}
        assert {item["opened_by"] for item in listed} == {"link"}
        first = (await one.client.get(f"{SESSIONS}?limit=1")).json()
        rest = (await one.client.get(f"{SESSIONS}?cursor={first['next_cursor']}")).json()
        assert [*first["items"], *rest["items"]] == listed
        async with served.client("grace") as client:
            by_token = (await client.get(SESSIONS)).json()["items"]
        assert [item["is_present"] for item in by_token] == [False, False]
        async with served.client("user") as client:
            foreign = [item["id"] for item in (await client.get(SESSIONS)).json()["items"]]
        assert not {item["id"] for item in listed} & set(foreign)
        ended = await one.send("DELETE", f"{SESSIONS}/{listed[0]['id']}")
        assert ended.status_code == 204
        assert not await other.is_logged_in()
        again = await one.send("DELETE", f"{SESSIONS}/{listed[0]['id']}")
        assert again.status_code == 204, "the second time changes nothing"
        assert len((await one.client.get(SESSIONS)).json()["items"]) == 1
    closed = [action for action, _ in await entries(served, listed[0]["id"])]
    assert closed == ["login.open", "login.close"]


async def test_logins_that_are_over_are_not_listed(served: AppServer) -> None:
    user_id = await add_person(served, "olga")
    settings = served.app.state.settings
    async with browser(served, user_id) as one:
        for column, seconds in (
            ("last_used_at", settings.session_idle_seconds),
            ("created_at", settings.session_max_seconds),
        ):
            async with browser(served, user_id):
                newest = (await one.client.get(SESSIONS)).json()["items"][0]["id"]
            async with served.database.write() as session:
                await session.execute(
                    update(LoginSessionRow)
                    .where(LoginSessionRow.id == newest)
                    .values({column: db_now(-seconds - 1)})
                )
        items = (await one.client.get(SESSIONS)).json()["items"]
        assert [item["is_present"] for item in items] == [True]


async def test_a_foreign_login_is_answered_like_a_missing_one(served: AppServer) -> None:
    zelda, yara = await add_person(served, "zelda"), await add_person(served, "yara")
    async with browser(served, zelda) as one, browser(served, yara) as other:
        theirs = (await other.client.get(SESSIONS)).json()["items"][0]["id"]
        answers = [
            (await one.send("DELETE", f"{SESSIONS}/{name}")).json()
            for name in (theirs, "ses_00000000000000000000000000")
        ]
        assert [(one["status"], one["code"]) for one in answers] == [(404, "not_found")] * 2
        assert answers[0]["detail"] == answers[1]["detail"] == "There is no such login."
        assert await other.is_logged_in()


async def test_signing_out_everywhere_ends_all_logins_and_links(served: AppServer) -> None:
    user_id = await add_person(served, "hypatia")
    async with browser(served, user_id) as one, browser(served, user_id) as other:
        async with served.database.write() as session:
            link = await logins.make_link(session, user_id, 3_600)
        done = await one.send("POST", f"{ACCOUNT}:sign-out")
        assert done.json() == {"ended_sessions": 2}
        assert "palestra_session" not in one.client.cookies
        assert not await one.is_logged_in()
        assert not await other.is_logged_in()
        async with served.client() as client:
            used = await client.post("/api/v1/session:redeem", json={"code": link})
            assert used.status_code == 401
    async with served.client("hypatia") as client:
        again = await client.post(f"{ACCOUNT}:sign-out")
        assert again.json() == {"ended_sessions": 0}, "the token stays"
    signed = [data for action, data in await entries(served, user_id) if action == "user.sign_out"]
    assert signed == [{"sessions": 2}, {"sessions": 0}]


async def test_use_is_noted_with_the_address_behind_a_trusted_proxy(served: AppServer) -> None:
    user_id = await add_person(served, "annie")
    touches = served.app.state.touches
    served.app.state.settings = served.app.state.settings.model_copy(
        update={"trusted_proxies": ("127.0.0.0/8",)}
    )
    try:
        async with browser(served, user_id) as one, served.client("annie") as client:
            there = {"X-Forwarded-For": "198.51.100.9, 203.0.113.7"}
            await one.client.get("/api/v1/session", headers=there)
            await client.get(ACCOUNT, headers=there)
            await touches.flush(served.database)
            items = (await one.client.get(SESSIONS)).json()["items"]
            assert [item["address"] for item in items] == ["203.0.113.7"]
            token = (await client.get("/api/v1/tokens")).json()["items"][0]
            assert token["last_used_address"] == "203.0.113.7"
            assert token["last_used_at"] is not None
    finally:
        served.app.state.settings = served.app.state.settings.model_copy(
            update={"trusted_proxies": ()}
        )


async def test_a_stream_that_connects_again_keeps_no_login_alive(served: AppServer) -> None:
    """Regression: each connection of a live stream counted as a use of the login.

    `Last-Event-ID` is not valid here, so that the route answers without opening a stream.
    """
    user_id = await add_person(served, "mileva")
    touches = served.app.state.touches
    async with browser(served, user_id) as one, served.client("mileva") as client:
        await touches.flush(served.database)
        long_ago = {"last_used_at": db_now(-3_600.0)}
        async with served.database.write() as session:
            for table in (LoginSessionRow, TokenRow):
                mine = update(table).where(table.user_id == user_id)
                await session.execute(mine.values(long_ago))
            before = await _last_used(session, user_id)
        wrong = {"Last-Event-ID": "x"}
        for sender in (one.client, client):
            assert (await sender.get("/api/v1/events", headers=wrong)).status_code == 400
        await touches.flush(served.database)
        async with served.database.read() as session:
            after = await _last_used(session, user_id)
        assert after[0] == before[0], "the login"
        assert after[1] > before[1], "the token"
        await one.client.get(ACCOUNT)
        await touches.flush(served.database)
        async with served.database.read() as session:
            assert (await _last_used(session, user_id))[0] > before[0]


async def _last_used(session: Any, user_id: str) -> list[Any]:
    """Returns the last use of the only login and of the only token of a user."""
    return [
        await session.scalar(select(table.last_used_at).where(table.user_id == user_id))
        for table in (LoginSessionRow, TokenRow)
    ]
