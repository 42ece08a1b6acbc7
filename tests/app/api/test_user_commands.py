"""`palestra users` against the real application."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from sqlalchemy import update

from app.db.models import UserRow
from palestra.cli.main import main
from tests.app.api.serving import AppServer
from tests.support.listening import listening

pytestmark = pytest.mark.asyncio(loop_scope="module")

Command = Callable[..., "asyncio.Future[tuple[int, str, str]]"]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def url(shared: AppServer) -> AsyncIterator[str]:
    async with listening(shared.app) as address:
        yield address


@pytest.fixture
def palestra(
    shared: AppServer,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
    tmp_path: Path,
) -> Callable[..., object]:
    monkeypatch.setenv("PALESTRA_SERVER", url)
    monkeypatch.setenv("PALESTRA_TOKEN", shared.tokens["user"])
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)

    async def run(*arguments: str) -> tuple[int, str, str]:
        code = await asyncio.to_thread(main, list(arguments))
        captured = capfdbinary.readouterr()
        return code, captured.out.decode(), captured.err.decode()

    return run


async def test_people_are_invited_and_invitations_revoked(palestra: Command, url: str) -> None:
    code, out, errors = await palestra(
        "users", "invite", "hedy", "ida", "--project", "default=member", "--hours", "24"
    )
    assert (code, errors) == (0, "")
    lines = out.splitlines()
    assert [line.partition(",")[0] for line in lines] == ["hedy", "ida"]
    assert all(f" {url}/login#code=pll_" in line for line in lines)
    code, out, _ = await palestra("users", "invite", "--json", "--email", "x@lab.org")
    (made,) = json.loads(out)
    assert (made["email"], made["state"]) == ("x@lab.org", "open")
    code, out, _ = await palestra("users", "revoke-invitation", made["id"])
    assert (code, out) == (0, f"{made['id']} is revoked\n")
    code, out, _ = await palestra("users", "invitations")
    rows = [line.split() for line in out.splitlines()]
    assert [made["id"], "x@lab.org", "revoked"] in [row[:3] for row in rows]
    assert "default=member" in next(row for row in rows if row[1] == "ida")
    assert "#code" not in out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--project", "default"], "--project default: write PROJECT=ROLE, where ROLE is viewer"),
        (["--project", "default=boss"], "write PROJECT=ROLE"),
        (["Two Words"], "name must"),
        (["--email", "nobody"], "email must"),
        (["a", "b", "--email", "x@lab.org"], "--email are for one person"),
    ],
)
async def test_a_wrong_invitation_is_named(
    palestra: Command, options: list[str], sentence: str
) -> None:
    code, out, errors = await palestra("users", "invite", *options)
    assert (code, out) == (2, "")
    assert sentence in errors


async def test_the_servers_refusal_is_printed(palestra: Command) -> None:
    code, _, errors = await palestra("users", "invite", "admin")
    assert (code, "Another user has this name." in errors) == (1, True)
    code, _, errors = await palestra("users", "revoke-invitation", "inv_none")
    assert (code, "no such invitation" in errors) == (1, True)


async def test_a_person_is_managed_from_invitation_to_deletion(
    palestra: Command, shared: AppServer
) -> None:
    _, out, _ = await palestra("users", "invite", "joan", "--project", "default=member", "--json")
    code = json.loads(out)[0]["url"].partition("#code=")[2]
    async with shared.client() as client:
        body = {"code": code, "password": "four unrelated owls sing"}
        assert (await client.post("/api/v1/session:redeem", json=body)).status_code == 201
    done, out, _ = await palestra("users", "list", "JOAN")
    assert done == 0
    assert [line.split()[0] for line in out.splitlines()] == ["name", "joan"]
    _, out, _ = await palestra("users", "set", "joan", "--display-name", "Joan C.", "--admin")
    assert " Joan C. " in out
    assert " yes " in out
    _, out, _ = await palestra("users", "set", "joan", "--display-name", "", "--no-admin", "--json")
    changed = json.loads(out)
    assert (changed["display_name"], changed["is_admin"]) == ("", False)
    _, out, _ = await palestra("users", "sign-out", "joan")
    assert out == "1 logins ended\n"
    _, out, _ = await palestra("users", "reset-password", "joan")
    assert "/login?reset=true#code=pll_" in out
    _, out, _ = await palestra("users", "disable", "joan")
    assert out == "joan is disabled; 0 unfinished jobs, which go on\n"
    _, out, _ = await palestra("users", "list", "--state", "disabled", "--json")
    assert "joan" in [one["name"] for one in json.loads(out)]
    assert "admin" not in [one["name"] for one in json.loads(out)]
    _, out, _ = await palestra("users", "enable", "joan")
    assert out == "joan may log in again\n"
    _, out, _ = await palestra("users", "show", "joan")
    assert "live jobs 0" in out
    _, out, _ = await palestra("users", "delete", "joan")
    assert out == "joan is deleted\n"
    done, _, errors = await palestra("users", "show", "joan")
    assert (done, "no such user" in errors) == (1, True)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["set", "admin"], "nothing to change"),
        (["set", "admin", "--email", "nobody"], "--email must"),
        (["disable", "admin", "--jobs", "transfer"], "belong together"),
        (["disable", "admin", "--transfer-to", "zoe"], "belong together"),
        (["disable", "admin", "--jobs", "burn"], "--jobs"),
    ],
)
async def test_a_wrong_option_is_named(
    palestra: Command, options: list[str], sentence: str
) -> None:
    code, out, errors = await palestra("users", *options)
    assert (code, out) == (2, "")
    assert sentence in errors


async def test_the_last_administrator_is_not_disabled(palestra: Command, shared: AppServer) -> None:
    async with shared.database.write() as session:
        others = update(UserRow).where(UserRow.name != "admin")
        await session.execute(others.values(is_admin=False))
    code, _, errors = await palestra("users", "disable", "admin")
    assert (code, "the last administrator of the server" in errors) == (1, True)
