"""The password of one's own account."""

import asyncio

import pytest

from app.domain.login_limits import PER_BROWSER
from app.services.access import logins
from tests.app.api.account_browser import (
    ACCOUNT,
    FIRST,
    PASSWORD,
    SECOND,
    browser,
    entries,
    fault,
    make_older,
    served,
)
from tests.app.api.serving import AppServer
from tests.app.api.test_users import add_person

__all__ = ["served"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_first_password_is_set_by_a_login_and_asked_for_from_then_on(
    served: AppServer,
) -> None:
    user_id = await add_person(served, "sofia", display_name="Sofia K.", email="sofia@lab.org")
    async with browser(served, user_id) as one, browser(served, user_id) as other:
        await make_older(served, user_id)
        seen = (await one.client.get(ACCOUNT)).json()
        assert (seen["has_password"], seen["current_password_needed"]) == (False, False)
        async with served.database.write() as session:
            link = await logins.make_link(session, user_id, 3_600)
        done = await one.set_password(FIRST)
        assert (done.status_code, done.json()) == (200, {"ended_sessions": 1})
        assert await one.is_logged_in()
        assert not await other.is_logged_in()
        async with served.client() as client:
            used = await client.post("/api/v1/session:redeem", json={"code": link})
        assert used.json()["code"] == "link_used"
        seen = (await one.client.get(ACCOUNT)).json()
        assert (seen["has_password"], seen["current_password_needed"]) == (True, True)
        assert fault(await one.set_password(SECOND)) == (
            422,
            "current_password_needed",
            "/current_password",
        )
        assert fault(await one.set_password(SECOND, "not this one")) == (
            403,
            "wrong_password",
            "/current_password",
        )
        async with browser(served, user_id, password=FIRST):
            pass
        assert (await one.set_password(SECOND, FIRST)).status_code == 200
        async with browser(served, user_id, password=SECOND):
            pass
        async with served.client() as client:
            old = await client.post("/api/v1/session", json={"user": "sofia", "password": FIRST})
        assert old.json()["code"] == "wrong_login"
        async with served.client("sofia") as client:
            assert (await client.get("/api/v1/session")).status_code == 200, "tokens stay"
    sets = [data for action, data in await entries(served, user_id) if action == "password.set"]
    assert sets == [
        {"confirmed_by": "login", "ended_sessions": 1},
        {"confirmed_by": "current password", "ended_sessions": 1},
    ]


async def test_a_fresh_login_by_link_sets_a_forgotten_password(served: AppServer) -> None:
    """A login by password, by invitation or by an older link does not."""
    user_id = await add_person(served, "maryam")
    async with browser(served, user_id) as one:
        assert (await one.set_password(FIRST)).status_code == 200
    async with browser(served, user_id, password=FIRST) as by_password:
        assert fault(await by_password.set_password(SECOND))[1] == "current_password_needed"
    async with browser(served, user_id) as by_link:
        assert not (await by_link.client.get(ACCOUNT)).json()["current_password_needed"]
        await make_older(served, user_id)
        assert fault(await by_link.set_password(SECOND))[1] == "current_password_needed"
    async with browser(served, user_id) as by_link:
        assert (await by_link.set_password(SECOND)).status_code == 200
    sets = [data for action, data in await entries(served, user_id) if action == "password.set"]
    assert [data["confirmed_by"] for data in sets] == ["login link", "login link"]


async def test_a_new_password_meets_the_rules_of_passwords(served: AppServer) -> None:
    user_id = await add_person(served, "rosalind", email="franklin@lab.org")
    async with browser(served, user_id) as one:
        for password, expected in (
            ("too short", (422, "password_length", "/password")),
            ("password12345", (422, "weak_password", "/password")),
            ("rosalindrosalind", (422, "weak_password", "/password")),
            ("franklin@lab.org", (422, "weak_password", "/password")),
            ("", (422, "invalid_document", "/password")),
            ("x" * 1_025, (422, "invalid_document", "/password")),
        ):
            assert fault(await one.set_password(password)) == expected, password
        wrong = await one.send("PUT", PASSWORD, json={"password": FIRST, "user": "admin"})
        assert fault(wrong) == (422, "invalid_document", "/user")
        assert not (await one.client.get(ACCOUNT)).json()["has_password"]


async def test_a_token_sets_no_first_password(served: AppServer) -> None:
    """A password that a token had set would remain valid after the token has ended."""
    user_id = await add_person(served, "chien")
    async with served.client("chien") as client:
        refused = await client.put(PASSWORD, json={"password": FIRST})
        assert fault(refused) == (403, "login_needed", "")
        async with browser(served, user_id) as one:
            await one.set_password(FIRST)
            body = {"password": SECOND, "current_password": FIRST}
            done = await client.put(PASSWORD, json=body)
            assert (done.status_code, done.json()) == (200, {"ended_sessions": 1})
            assert not await one.is_logged_in()


async def test_guesses_at_the_current_password_are_limited(served: AppServer) -> None:
    """A stolen login must not permit unlimited guesses at the password."""
    user_id = await add_person(served, "lisa")
    async with browser(served, user_id) as one:
        await one.set_password(FIRST)
        await make_older(served, user_id)
        answers = [await one.set_password(SECOND, "wrong") for _ in range(PER_BROWSER.at_once)]
        assert {answer.status_code for answer in answers} == {403}
        for _ in range(30):
            limited = await one.set_password(SECOND, "wrong")
            if limited.status_code != 403:
                break
        assert fault(limited)[:2] == (429, "too_many_logins")
        assert int(limited.headers["retry-after"]) > 0
        assert await one.is_logged_in(), "the login itself goes on"


async def test_of_two_changes_at_once_one_is_refused(served: AppServer) -> None:
    user_id = await add_person(served, "ada")
    async with browser(served, user_id) as one:
        both = await asyncio.gather(one.set_password(FIRST), one.set_password(SECOND))
        assert sorted(answer.status_code for answer in both) == [200, 409]
        lost = next(answer for answer in both if answer.status_code == 409)
        assert fault(lost)[1] == "password_changed"
