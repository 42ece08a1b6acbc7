"""`palestra account` against the real application."""

import contextlib
import io
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from app.domain.login_limits import LoginLimits
from tests.app.api.account_browser import FIRST, SECOND, browser, make_older
from tests.app.api.serving import AppServer
from tests.app.api.test_user_commands import Command, palestra, url
from tests.app.api.test_users import add_person

__all__ = ["palestra", "url"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def vera_id(shared: AppServer) -> AsyncIterator[str]:
    """ID of a person whose token the commands use."""
    yield await add_person(shared, "vera")


@pytest.fixture(autouse=True)
def vera_login(
    shared: AppServer, vera_id: str, palestra: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PALESTRA_TOKEN", shared.tokens["vera"])
    shared.app.state.login_limits = LoginLimits()


async def test_the_account_is_shown_and_changed(palestra: Command) -> None:
    code, out, errors = await palestra("account", "show")
    assert (code, errors) == (0, "")
    assert out.splitlines()[1].split() == ["vera", "-", "-", "no", "not", "set", "default=member"]
    code, out, _ = await palestra(
        "account", "set", "--display-name", "Vera R.", "--email", "vera@lab.org"
    )
    assert " Vera R. " in out
    code, out, _ = await palestra("account", "set", "--display-name", "", "--json")
    changed = json.loads(out)
    assert (changed["display_name"], changed["email"]) == ("", "vera@lab.org")
    code, _, errors = await palestra("account", "set")
    assert (code, "name at least one option" in errors) == (2, True)
    code, _, errors = await palestra("account", "set", "--email", "nobody")
    assert (code, errors.startswith("palestra: --email must")) == (2, True)


async def test_the_password_is_changed_by_two_lines_of_input(
    palestra: Command, shared: AppServer, vera_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{FIRST}\n"))
    code, _, errors = await palestra("account", "password")
    assert (code, "A token cannot set the first password." in errors) == (1, True)
    async with browser(shared, vera_id) as one:
        assert (await one.set_password(FIRST)).status_code == 200
        for typed, exit_code, sentence in (
            ("", 2, "current password is missing"),
            (f"{FIRST}\n", 2, "new password is missing"),
            (f"wrong\n{SECOND}\n", 1, "The current password is wrong."),
            (f"{FIRST}\npassword12345\n", 1, "too easy to guess"),
        ):
            monkeypatch.setattr("sys.stdin", io.StringIO(typed))
            code, out, errors = await palestra("account", "password")
            assert (code, out, sentence in errors) == (exit_code, "", True), errors
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{FIRST}\n{SECOND}\n"))
        code, out, _ = await palestra("account", "password")
        assert (code, out) == (0, "the password is changed; 1 browser login ended\n")
        assert not await one.is_logged_in()
    async with browser(shared, vera_id, password=SECOND):
        pass


async def test_browser_logins_are_listed_and_ended(
    palestra: Command, shared: AppServer, vera_id: str
) -> None:
    async with contextlib.AsyncExitStack() as stack:
        await palestra("account", "sign-out")
        one = await stack.enter_async_context(browser(shared, vera_id))
        other = await stack.enter_async_context(browser(shared, vera_id, agent="curl/8.5.0"))
        await make_older(shared, vera_id)
        _, out, _ = await palestra("account", "sessions")
        rows = [line.split() for line in out.splitlines()]
        assert rows[0] == ["session", "browser", "address", "opened", "by", "last", "used"]
        ended = next(row[0] for row in rows if "curl" in row)
        assert all("127.0.0.1" in row for row in rows[1:])
        code, out, _ = await palestra("account", "end-session", ended)
        assert (code, out) == (0, f"{ended} has ended\n")
        assert not await other.is_logged_in()
        code, _, errors = await palestra("account", "end-session", "ses_none")
        assert (code, "There is no such login." in errors) == (1, True)
        code, out, _ = await palestra("account", "sign-out")
        assert (code, out) == (0, "1 browser login ended\n")
        assert not await one.is_logged_in()
        _, out, _ = await palestra("account", "sessions", "--json")
        assert json.loads(out) == []


async def test_tokens_are_listed_with_the_address_of_their_last_use(
    palestra: Command, shared: AppServer
) -> None:
    await palestra("tokens", "list")
    await shared.app.state.touches.flush(shared.database)
    _, out, _ = await palestra("tokens", "list")
    headings, row = (line.split() for line in out.splitlines())
    assert headings[-4:] == ["last", "used", "from", "state"]
    assert row[-1] == "127.0.0.1"
