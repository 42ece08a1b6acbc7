"""`palestra join` and `palestra login --user` against the real application."""

import asyncio
import io
import json
import os
import pty
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select

from app.db.models import LoginSessionRow, TokenRow, UserRow
from app.db.models.invitations import InvitationRow
from app.services.access import logins, tokens
from palestra.client import Client
from palestra.errors import TokenNotMadeError
from tests.app.api.serving import AppServer
from tests.app.api.test_user_commands import Command, palestra, url
from tests.support.process_stack import make_bare_environment
from tests.support.waiting import PATIENCE_SECONDS

__all__ = ["palestra", "url"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

TypeLines = Callable[[str], None]
Invite = Callable[..., Awaitable[dict[str, str]]]

PASSWORD = "four unrelated owls sing"


@pytest.fixture
def invite(palestra: Command, shared: AppServer, monkeypatch: pytest.MonkeyPatch) -> Invite:
    """Makes an invitation as the administrator; returns it with its link."""

    async def make(*arguments: str) -> dict[str, str]:
        with monkeypatch.context() as context:
            context.setenv("PALESTRA_TOKEN", shared.tokens["user"])
            code, out, errors = await palestra("users", "invite", *arguments, "--json")
        assert code == 0, errors
        made: dict[str, str] = json.loads(out)[0]
        return made

    return make


@pytest.fixture
def type_lines(monkeypatch: pytest.MonkeyPatch) -> TypeLines:
    monkeypatch.delenv("PALESTRA_TOKEN", raising=False)

    def give(text: str) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))

    return give


async def _counts(shared: AppServer) -> tuple[int, ...]:
    """Returns the numbers of users, tokens and open browser logins."""
    queries = [
        select(func.count()).select_from(table) for table in (UserRow, TokenRow, LoginSessionRow)
    ]
    queries[-1] = queries[-1].where(LoginSessionRow.ended_at.is_(None))
    async with shared.database.read() as session:
        return tuple([await session.scalar(query) or 0 for query in queries])


def _stored(directory: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(
        (directory / "config" / "palestra" / "logins.json").read_text("utf-8")
    )
    return found


async def test_a_person_joins_and_the_next_command_has_a_token(
    palestra: Command,
    shared: AppServer,
    url: str,
    tmp_path: Path,
    type_lines: TypeLines,
    invite: Invite,
) -> None:
    made = await invite("joan", "--project", "default=member")
    users, made_tokens, sessions = await _counts(shared)
    type_lines(f"{PASSWORD}\n")
    code, out, errors = await palestra("join", made["url"], "--password-stdin")
    assert (code, errors) == (0, "")
    told = out.splitlines()
    assert told[0] == f"invited by admin as a user of {url}; projects: default=member"
    assert told[1].startswith(f"logged in to {url} as joan, project default (kept in ")
    assert "`palestra submit FILE`" in told[2]
    assert PASSWORD not in out
    assert await _counts(shared) == (users + 1, made_tokens + 1, sessions), "its login has ended"
    assert _stored(tmp_path)["default"] == url
    code, out, errors = await palestra("tokens", "list", "--json")
    assert code == 0, errors
    (token,) = json.loads(out)
    machine = os.uname().nodename[:64]
    assert (token["user"], token["name"], token["parent_id"]) == ("joan", machine, None)
    assert sorted(token["scopes"]) == ["admin", "read", "submit"]


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("", "new password is missing"),
        ("short\n", "password: must have at least 12"),
        ("passwordpassword\n", "too easy to guess"),
        ("1234567890123\n", "too easy to guess"),
        ("hedyhedyhedy\n", "too easy to guess"),
    ],
)
async def test_a_bad_password_uses_nothing_up(
    palestra: Command,
    shared: AppServer,
    type_lines: TypeLines,
    typed: str,
    sentence: str,
    invite: Invite,
) -> None:
    made = await invite("--display-name", "Hedy Lamarr")
    before = await _counts(shared)
    type_lines(typed)
    code, _, errors = await palestra("join", made["url"], "--user", "hedy", "--password-stdin")
    assert code != 0
    assert sentence in errors
    assert await _counts(shared) == before
    type_lines(f"{PASSWORD}\n")
    name = f"hedy-{len(typed)}"
    code, out, errors = await palestra("join", made["url"], "--user", name, "--password-stdin")
    assert (code, errors) == (0, ""), "the link is good still"
    assert name in out


async def test_a_name_is_needed_where_the_invitation_has_none_and_one_that_is_free(
    palestra: Command,
    shared: AppServer,
    type_lines: TypeLines,
    invite: Invite,
) -> None:
    made = await invite()
    before = await _counts(shared)
    type_lines(f"{PASSWORD}\n")
    code, _, errors = await palestra("join", made["url"], "--password-stdin")
    assert (code, "give one with --user" in errors) == (2, True)
    code, _, errors = await palestra("join", made["url"], "--user", "admin", "--password-stdin")
    assert (code, "user: " in errors) == (1, True)
    assert await _counts(shared) == before


async def test_a_link_that_is_used_expired_or_revoked_says_so(
    palestra: Command,
    shared: AppServer,
    type_lines: TypeLines,
    invite: Invite,
) -> None:
    used, over, gone = [await invite(name) for name in ("usta", "ovid", "gundi")]
    type_lines(f"{PASSWORD}\n")
    assert (await palestra("join", used["url"], "--password-stdin"))[0] == 0
    async with shared.database.write() as session:
        row = await session.get_one(InvitationRow, over["id"])
        row.expires_at = row.created_at - timedelta(seconds=1)
    async with shared.client("user") as client:
        await client.delete(f"/api/v1/invitations/{gone['id']}")
    before = await _counts(shared)
    for made, sentence in (
        (used, "This invitation was used. If it was you, log in with your name and password."),
        (over, "This invitation has expired."),
        (gone, "This invitation was revoked."),
    ):
        type_lines(f"{PASSWORD}\n")
        code, out, errors = await palestra("join", made["url"], "--password-stdin")
        assert (code, out, sentence in errors) == (1, "", True), errors
    assert await _counts(shared) == before


async def test_a_server_behind_a_proxy_is_joined_on_its_own_host(
    palestra: Command, shared: AppServer, url: str, type_lines: TypeLines, invite: Invite
) -> None:
    settings = shared.app.state.settings
    shared.app.state.settings = settings.model_copy(update={"public_url": "https://lab.invalid"})
    try:
        assert shared.app.state.settings.secure_cookies
        link = (await invite("prue"))["url"]
        assert link.startswith("https://lab.invalid/login#")
        type_lines(f"{PASSWORD}\n")
        code, _, errors = await palestra("join", link, "--password-stdin")
        assert (code, "https://lab.invalid does not answer" in errors) == (1, True)
        type_lines(f"{PASSWORD}\n")
        code, out, errors = await palestra("join", link, "--server", url, "--password-stdin")
        assert (code, errors) == (0, "")
        assert f"logged in to {url} as prue" in out
    finally:
        shared.app.state.settings = settings


async def test_links_of_other_hosts_and_other_texts_are_refused(
    palestra: Command,
    shared: AppServer,
    url: str,
    type_lines: TypeLines,
    invite: Invite,
) -> None:
    made = await invite("otto")
    async with shared.database.write() as session:
        login_code = await logins.make_link(session, shared.world.other.user_id, 60)
    code = made["url"].partition("#code=")[2]
    before = await _counts(shared)
    for link, exit_code, sentence in (
        (f"http://127.0.0.1:9/login#code={code}", 1, "http://127.0.0.1:9 does not answer"),
        (f"{url}/login#code=pll_of_another_server", 1, "This link was used or has expired."),
        (f"{url}/login#code={login_code}", 2, "open it in a browser"),
        (f"{url}/login", 2, "copy all of it"),
        (f"{url}/runs#code={code}", 2, "copy all of it"),
        (f"ftp://host/login#code={code}", 2, "copy all of it"),
        (code, 2, "copy all of it"),
    ):
        type_lines(f"{PASSWORD}\n")
        done, out, errors = await palestra("join", link, "--password-stdin")
        assert (done, out, sentence in errors) == (exit_code, "", True), errors
        assert code not in errors
    type_lines("")
    done, _, errors = await palestra("join", made["url"])
    assert (done, "--password-stdin" in errors) == (2, True)
    assert await _counts(shared) == before


async def test_a_token_that_is_not_made_is_made_by_a_login_with_the_password(
    palestra: Command,
    shared: AppServer,
    url: str,
    type_lines: TypeLines,
    invite: Invite,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = await invite("rita", "--project", "default=viewer")

    async def refuse(*_: object, **__: object) -> None:
        raise tokens.UnauthenticatedError("unauthenticated", "No tokens now.")

    with monkeypatch.context() as context:
        context.setattr(tokens, "create_token", refuse)
        type_lines(f"{PASSWORD}\n")
        code, _, errors = await palestra("join", made["url"], "--password-stdin")
        assert code == 1
        assert f"you are a user of {url} now: rita. No token was made: No tokens now." in errors
        assert f"`palestra login {url} --user rita`" in errors
        with pytest.raises(TokenNotMadeError):
            await asyncio.to_thread(Client.log_in, url, user="rita", password=PASSWORD)
    type_lines(f"{PASSWORD}x\n")
    code, _, errors = await palestra("login", url, "--user", "rita", "--password-stdin")
    assert (code, "User name or password is wrong." in errors) == (1, True)
    type_lines(f"{PASSWORD}\n")
    code, out, errors = await palestra("login", url, "--user", "rita", "--password-stdin")
    assert (code, errors) == (0, "")
    assert out.startswith(f"logged in to {url} as rita, project default ")


async def test_the_client_joins_and_logs_in(url: str, invite: Invite) -> None:
    made = await invite()
    first = await asyncio.to_thread(
        Client.join, made["url"], user="cleo", password=PASSWORD, token_name="notebook"
    )
    second = await asyncio.to_thread(Client.log_in, url, user="cleo", password=PASSWORD)
    assert (first.user, first.name) == (second.user, "notebook") == ("cleo", "notebook")
    for token in (first, second):
        with Client(url, token.secret or "") as client:
            assert (await asyncio.to_thread(client.session)).user == "cleo"


async def test_a_terminal_asks_for_name_and_password_twice_without_echo(
    tmp_path: Path, invite: Invite
) -> None:
    made = await invite()
    code, shown = await asyncio.to_thread(_join_at_a_terminal, made["url"], tmp_path)
    assert code == 0, shown
    assert PASSWORD not in shown
    assert "logged in to" in shown


def _join_at_a_terminal(link: str, directory: Path) -> tuple[int, str]:
    """Runs the command at a terminal; returns its exit code and what the terminal showed."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "palestra.cli", "join", link]
    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**make_bare_environment(), "XDG_CONFIG_HOME": str(directory), "HOME": str(directory)},
        start_new_session=True,
    )
    os.close(theirs)
    shown = ""
    answers = [("Login name: ", "tess"), ("New password: ", PASSWORD), ("confirmation: ", PASSWORD)]
    try:
        while True:
            shown += os.read(ours, 1_024).decode()
            if answers and shown.endswith(answers[0][0]):
                os.write(ours, f"{answers.pop(0)[1]}\n".encode())
    except OSError:
        pass  # the terminal has no reader any more: the command has ended
    finally:
        os.close(ours)
    return process.wait(PATIENCE_SECONDS), shown
