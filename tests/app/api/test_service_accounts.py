"""Service accounts and tokens: routes and commands against the real application."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from app.services.access import principals
from palestra.cli.main import main
from tests.app.api.serving import AppServer
from tests.support.listening import listening
from tests.support.server_fixture import make_definition

pytestmark = pytest.mark.asyncio(loop_scope="module")

ACCOUNTS = "/projects/default/service-accounts"
Command = Callable[..., "asyncio.Future[tuple[int, str, str]]"]


async def ask(
    served: AppServer, who: str, method: str, path: str, body: Any = None
) -> tuple[int, Any]:
    """Sends a request; returns the status and the JSON of the answer."""
    async with served.client(who) as client:
        answer = await client.request(method, f"/api/v1{path}", json=body)
    return answer.status_code, answer.json() if answer.content else None


async def make_account(served: AppServer, name: str, role: str = "member") -> dict[str, Any]:
    """Makes a service account whose token has its name; returns the token."""
    status, _ = await ask(served, "user", "POST", ACCOUNTS, {"name": name, "role": role})
    assert status == 201
    body = {"name": "ci", "scopes": ["read", "submit"]}
    status, made = await ask(served, "user", "POST", f"{ACCOUNTS}/{name}/tokens", body)
    assert status == 201, made
    served.tokens[name] = made["secret"]
    return made  # type: ignore[no-any-return]


async def test_a_service_account_submits_in_its_project_alone(shared: AppServer) -> None:
    made = await make_account(shared, "nightly")
    assert (made["user"], made["project"]) == ("nightly", "default")
    assert made["expires_at"] is not None
    body = {"definition": make_definition(loop={"env_steps": 11_111})}
    status, found = await ask(shared, "nightly", "POST", "/experiments", body)
    assert (status, found["created_by"], found["project"]) == (201, "nightly", "default")
    assert (await ask(shared, "nightly", "GET", "/projects/elsewhere"))[0] == 404
    assert (await ask(shared, "nightly", "GET", "/tokens"))[0] == 403
    _, page = await ask(shared, "user", "GET", ACCOUNTS)
    (row,) = [one for one in page["items"] if one["name"] == "nightly"]
    assert (row["role"], row["tokens"]) == ("member", 1)


async def test_a_service_account_counts_as_its_maker_in_limits(shared: AppServer) -> None:
    made = await make_account(shared, "counted")
    async with shared.database.read() as session:
        account = await principals.find_by_token(session, made["secret"])
        maker = await principals.find_by_token(session, shared.tokens["user"])
    assert account is not None
    assert maker is not None
    assert account.user_id != maker.user_id
    assert account.person_id == maker.person_id == maker.user_id


async def test_a_viewer_account_does_not_submit(shared: AppServer) -> None:
    await make_account(shared, "reports", "viewer")
    body = {"definition": make_definition(name="reports")}
    assert (await ask(shared, "reports", "POST", "/experiments", body))[0] == 403
    assert (await ask(shared, "reports", "GET", "/runs"))[0] == 200


async def test_wrong_service_accounts_are_refused(shared: AppServer) -> None:
    await make_account(shared, "refusals")
    answers = {
        "name_taken": await ask(shared, "user", "POST", ACCOUNTS, {"name": "zoe"}),
        "role_not_allowed": await ask(
            shared, "user", "POST", ACCOUNTS, {"name": "boss", "role": "maintainer"}
        ),
        "missing_scope": await ask(
            shared,
            "user",
            "POST",
            f"{ACCOUNTS}/refusals/tokens",
            {"name": "x", "scopes": ["admin"]},
        ),
        "enrolment_token_needed": await ask(
            shared,
            "user",
            "POST",
            f"{ACCOUNTS}/refusals/tokens",
            {"name": "x", "scopes": ["worker"]},
        ),
        "end_needed": await ask(
            shared,
            "user",
            "POST",
            f"{ACCOUNTS}/refusals/tokens",
            {"name": "x", "scopes": ["read"], "expires_in_days": None},
        ),
        "not_found": await ask(shared, "user", "DELETE", f"{ACCOUNTS}/zoe"),
    }
    assert {name: body["code"] for name, (_, body) in answers.items()} == {
        name: name for name in answers
    }
    assert [status for status, _ in answers.values()] == [409, 422, 403, 422, 422, 404]
    status, _ = await ask(shared, "foreign", "GET", ACCOUNTS)
    assert status == 404


async def test_a_maintainer_rotates_the_tokens_of_service_accounts_not_those_of_people(
    shared: AppServer,
) -> None:
    made = await make_account(shared, "rotated")
    status, new = await ask(
        shared, "user", "POST", f"/tokens/{made['id']}:rotate", {"overlap_hours": 0}
    )
    assert status == 200
    assert (await ask(shared, "rotated", "GET", "/session"))[0] == 401
    shared.tokens["rotated"] = new["secret"]
    assert (await ask(shared, "rotated", "GET", "/session"))[0] == 200


async def test_a_token_of_a_maintainer_gives_no_service_secret_that_outlives_it(
    shared: AppServer,
) -> None:
    """Regression: a token of one day could rotate a service account's token that ends later."""
    made = await make_account(shared, "lasting")
    body = {"name": "short", "scopes": ["read", "submit", "admin"], "expires_in_days": 1}
    _, short = await ask(shared, "maintainer", "POST", "/tokens", body)
    shared.tokens["short"] = short["secret"]
    rotate = f"/tokens/{made['id']}:rotate"
    for body in ({}, {"expires_in_days": 30}):
        status, problem = await ask(shared, "short", "POST", rotate, body)
        assert (status, problem["code"]) == (422, "outlives_caller")
    assert (await ask(shared, "lasting", "GET", "/session"))[0] == 200
    status, new = await ask(shared, "short", "POST", rotate, {"expires_in_days": 1})
    assert (status, new["expires_at"]) == (200, short["expires_at"])


async def test_a_deleted_account_ends_at_once_and_its_jobs_keep_its_name(
    shared: AppServer,
) -> None:
    await make_account(shared, "leaving")
    body = {"definition": make_definition(loop={"env_steps": 12_222})}
    _, made = await ask(shared, "leaving", "POST", "/experiments", body)
    assert (await ask(shared, "user", "DELETE", f"{ACCOUNTS}/leaving"))[0] == 204
    assert (await ask(shared, "leaving", "GET", "/session"))[0] == 401
    assert (await ask(shared, "user", "DELETE", f"{ACCOUNTS}/leaving"))[0] == 404
    _, found = await ask(shared, "user", "GET", f"/experiments/{made['id']}")
    assert found["created_by"] == "leaving"
    status, problem = await ask(shared, "user", "POST", ACCOUNTS, {"name": "leaving"})
    assert (status, problem["code"]) == (409, "name_taken")
    _, page = await ask(shared, "user", "GET", "/projects/default/members")
    assert "leaving" not in {one["user"] for one in page["items"]}


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
        code = await asyncio.to_thread(main, arguments)
        captured = capfdbinary.readouterr()
        return code, captured.out.decode(), captured.err.decode()

    return run


async def is_accepted(shared: AppServer, secret: str) -> bool:
    shared.tokens["tried"] = secret
    return (await ask(shared, "tried", "GET", "/session"))[0] == 200


async def test_commands_manage_tokens(shared: AppServer, palestra: Command) -> None:
    code, first, err = await palestra(
        "tokens", "create", "laptop", "--scope", "read", "--scope", "submit", "--only", "default"
    )
    assert code == 0, err
    assert "not shown again" in err
    assert await is_accepted(shared, first.strip())
    _, out, _ = await palestra("tokens", "list", "--json")
    (row,) = [one for one in json.loads(out) if one["name"] == "laptop"]
    assert (row["project"], row["scopes"]) == ("default", ["read", "submit"])
    code, second, err = await palestra("tokens", "rotate", row["id"], "--overlap-hours", "1")
    assert (code, "old secret is valid until" in err) == (0, True)
    assert await is_accepted(shared, first.strip())
    assert await is_accepted(shared, second.strip())
    code, out, _ = await palestra("tokens", "revoke", row["id"])
    assert (code, out) == (0, f"revoked {row['id']}\n")
    assert not await is_accepted(shared, second.strip())
    _, out, _ = await palestra("tokens", "list")
    lines = [line.rstrip() for line in out.splitlines()]
    assert next(line for line in lines if row["id"] in line).endswith("revoked")
    code, _, err = await palestra("tokens", "create", "rack", "--scope", "worker")
    assert (code, "palestra pools token POOL" in err) == (1, True)


async def test_commands_manage_service_accounts(shared: AppServer, palestra: Command) -> None:
    code, out, _ = await palestra("service-accounts", "create", "default", "builder")
    assert (code, out) == (0, "created service account builder of default\n")
    code, secret, _ = await palestra(
        "service-accounts", "token", "default", "builder", "ci", "--scope", "submit"
    )
    assert code == 0
    assert await is_accepted(shared, secret.strip())
    _, out, _ = await palestra("service-accounts", "list", "default")
    (row,) = [line.split() for line in out.splitlines() if line.startswith("builder")]
    assert row[:3] == ["builder", "member", "1"]
    code, _, _ = await palestra("service-accounts", "delete", "default", "builder")
    assert code == 0
    assert not await is_accepted(shared, secret.strip())
    code, _, err = await palestra("service-accounts", "create", "default", "No Slug")
    assert (code, err.startswith("palestra: ACCOUNT ")) == (2, True)
