"""One's own account: profile, password and browser logins."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from sqlalchemy import select, update

from app.api import auth
from app.db.clock import db_now
from app.db.models import AuditRow, LoginSessionRow, TokenRow, UserRow
from app.domain.login_limits import PER_BROWSER, LoginLimits
from app.services.access import logins
from app.services.access.accounts import FRESH_SECONDS
from tests.app.api.serving import ORIGIN, AppServer
from tests.app.api.test_users import person

pytestmark = pytest.mark.asyncio(loop_scope="module")

ACCOUNT = "/api/v1/account"
SESSIONS = f"{ACCOUNT}/sessions"
PASSWORD = f"{ACCOUNT}/password"
FIRST, SECOND = "four unrelated owls sing", "seven quiet lamps drift"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"


class Browser:
    """A browser with a login of its own."""

    def __init__(self, client: httpx.AsyncClient, csrf: str) -> None:
        self.client = client
        self._headers = {"Origin": ORIGIN, auth.CSRF_HEADER: csrf}

    async def send(self, method: str, path: str, **options: Any) -> httpx.Response:
        return await self.client.request(method, path, headers=self._headers, **options)

    async def set_password(self, password: str, current: str | None = None) -> httpx.Response:
        body = {"password": password, "current_password": current}
        return await self.send("PUT", PASSWORD, json=body)

    async def is_logged_in(self) -> bool:
        return (await self.client.get("/api/v1/session")).status_code == 200

    @property
    def device(self) -> str:
        return self.client.cookies["palestra_device"]


@pytest_asyncio.fixture(loop_scope="module")
async def served(shared: AppServer) -> AppServer:
    """The server with all login limits reset."""
    shared.app.state.login_limits = LoginLimits()
    return shared


@contextlib.asynccontextmanager
async def browser(
    served: AppServer, user_id: str, *, password: str | None = None, agent: str = FIREFOX
) -> AsyncIterator[Browser]:
    """Logs a person in: with a password, or with a new link."""
    client = served.client()
    client.headers["User-Agent"] = agent
    async with contextlib.aclosing(client):
        if password is not None:
            async with served.database.read() as session:
                name = await session.scalar(select(UserRow.name).where(UserRow.id == user_id))
            body = {"user": name, "password": password}
            answer = await client.post("/api/v1/session", json=body)
        else:
            async with served.database.write() as session:
                code = await logins.make_link(session, user_id, 3_600)
            answer = await client.post("/api/v1/session:redeem", json={"code": code})
        assert answer.status_code == 201, answer.text
        yield Browser(client, answer.json()["csrf_token"])


async def make_older(served: AppServer, user_id: str) -> None:
    """Makes all logins of a user too old to set a password without the current one."""
    async with served.database.write() as session:
        await session.execute(
            update(LoginSessionRow)
            .where(LoginSessionRow.user_id == user_id)
            .values(created_at=db_now(-FRESH_SECONDS - 1))
        )


def fault(answer: httpx.Response) -> tuple[int, str, str]:
    problem = answer.json()
    errors = problem["errors"]
    return problem["status"], problem["code"], errors[0]["pointer"] if errors else ""


async def entries(served: AppServer, object_id: str) -> list[tuple[str, dict[str, Any]]]:
    """Returns action and data of the audit log's entries about an object."""
    async with served.database.read() as session:
        query = select(AuditRow).where(AuditRow.object_id == object_id).order_by(AuditRow.id)
        return [(row.action, row.data) for row in await session.scalars(query)]


async def test_a_person_reads_and_changes_the_account(served: AppServer) -> None:
    user_id = await person(served, "emmy")
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
        "worker": "missing_scope",
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


async def test_a_first_password_is_set_by_a_login_and_asked_for_from_then_on(
    served: AppServer,
) -> None:
    user_id = await person(served, "sofia", display_name="Sofia K.", email="sofia@lab.org")
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
    user_id = await person(served, "maryam")
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
    user_id = await person(served, "rosalind", email="franklin@lab.org")
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
    """A token must not open a way in that outlives it."""
    user_id = await person(served, "chien")
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
    """A stolen login must not try passwords without a limit."""
    user_id = await person(served, "lisa")
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
    user_id = await person(served, "ada")
    async with browser(served, user_id) as one:
        both = await asyncio.gather(one.set_password(FIRST), one.set_password(SECOND))
        assert sorted(answer.status_code for answer in both) == [200, 409]
        lost = next(answer for answer in both if answer.status_code == 409)
        assert fault(lost)[1] == "password_changed"


async def test_logins_are_listed_with_browser_address_and_use(served: AppServer) -> None:
    user_id = await person(served, "grace")
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
    user_id = await person(served, "olga")
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
    zelda, yara = await person(served, "zelda"), await person(served, "yara")
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
    user_id = await person(served, "hypatia")
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
    user_id = await person(served, "annie")
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
    user_id = await person(served, "mileva")
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
