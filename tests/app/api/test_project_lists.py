"""Lists by project and by person, and submissions to a named project: API, client, commands."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import select

from app.db.models import MembershipRow, UserRow
from app.services.access import tokens
from palestra.cli.main import main
from palestra.client import Client
from palestra.contract.access import TokenRequest
from palestra.contract.names import Scope
from palestra.contract.permissions import Role
from palestra.errors import InvalidRequestError, NotFoundError
from tests.app.api.serving import AppServer
from tests.support.listening import listening
from tests.support.server_fixture import make_submission

pytestmark = pytest.mark.asyncio(loop_scope="module")

Command = Callable[..., "asyncio.Future[tuple[int, str, str]]"]
LISTS = ("experiments", "runs", "jobs")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def url(shared: AppServer) -> AsyncIterator[str]:
    """URL of a server on which zoe is a member of two projects, and has a job in each."""
    await _add_token(shared)
    async with shared.client("user") as admin:
        members = "/api/v1/projects/default/members"
        assert (await admin.put(f"{members}/zoe", json={"role": "member"})).status_code == 200
    async with shared.client("zoe") as zoe:
        body = make_submission(seeds=[41]).model_dump(mode="json", exclude_unset=True)
        answer = await zoe.post("/api/v1/experiments?project=default", json=body)
        assert answer.status_code in {200, 201}, answer.text
    async with listening(shared.app) as address:
        yield address


async def _add_token(shared: AppServer) -> None:
    """Adds a token of zoe, a maintainer of `elsewhere`, that covers all projects."""
    async with shared.database.write() as session:
        zoe = (await session.scalars(select(UserRow).where(UserRow.name == "zoe"))).one()
        request = TokenRequest(name="zoe", scopes=(Scope.READ, Scope.SUBMIT, Scope.ADMIN))
        token = await tokens.issue_token(session, None, zoe.id, request)
    shared.tokens["zoe"] = token.secret or ""


@pytest.fixture
def palestra(
    shared: AppServer,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
    tmp_path: Path,
) -> Callable[..., object]:
    """Returns a function that runs a command as zoe, a member of `default` and `elsewhere`."""
    monkeypatch.setenv("PALESTRA_SERVER", url)
    monkeypatch.setenv("PALESTRA_TOKEN", shared.tokens["zoe"])
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("PALESTRA_PROJECT", raising=False)
    monkeypatch.chdir(tmp_path)

    async def run(*arguments: str) -> tuple[int, str, str]:
        code = await asyncio.to_thread(main, arguments)
        captured = capfdbinary.readouterr()
        return code, captured.out.decode(), captured.err.decode()

    return run


async def list_items(shared: AppServer, who: str, path: str) -> list[dict[str, Any]]:
    async with shared.client(who) as client:
        answer = await client.get(f"/api/v1{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]  # type: ignore[no-any-return]


@pytest.mark.usefixtures("url")
@pytest.mark.parametrize("kind", ["runs", "jobs"])
async def test_lists_filter_by_person_within_what_the_caller_reads(
    shared: AppServer, kind: str
) -> None:
    every = await list_items(shared, "zoe", f"/{kind}?limit=200")
    assert {(one["project"], one["created_by"]) for one in every} == {
        ("default", "admin"),
        ("default", "zoe"),
        ("elsewhere", "zoe"),
    }
    mine = await list_items(shared, "zoe", f"/{kind}?user=me&limit=200")
    assert [one["id"] for one in mine] == [one["id"] for one in every if one["created_by"] == "zoe"]
    here = await list_items(shared, "zoe", f"/{kind}?user=zoe&project=default")
    assert [one["project"] for one in here] == ["default"]
    seen = await list_items(shared, "user", f"/{kind}?user=zoe")
    assert [one["id"] for one in seen] == [one["id"] for one in here]
    assert await list_items(shared, "user", f"/{kind}?user=nobody") == []


@pytest.mark.usefixtures("url")
async def test_experiments_filter_by_person(shared: AppServer) -> None:
    mine = await list_items(shared, "zoe", "/experiments?user=me")
    assert [(one["project"], one["created_by"]) for one in mine] == [("elsewhere", "zoe")]
    assert await list_items(shared, "zoe", "/experiments?user=zoe&project=default") == []


async def test_a_client_of_one_project_lists_and_submits_there(shared: AppServer, url: str) -> None:
    token = shared.tokens["zoe"]

    def ask() -> None:
        with Client(url, token) as client, Client(url, token, project="default") as within:
            for name in LISTS:
                assert {one.project for one in getattr(client, name)()} == {"default", "elsewhere"}
                assert {one.project for one in getattr(within, name)()} == {"default"}
            with pytest.raises(InvalidRequestError, match=r"--project SLUG.*project="):
                client.submit_document(make_submission(seeds=[42]))
            made, _ = within.submit_document(make_submission(seeds=[42]))
            assert made.project == "default"
            assert within.experiment(made.id).project == "default"
            found = {run.seed: run.created_by for run in within.runs(made.id, user="me")}
            assert found[42] == "zoe"
        with (
            Client(url, token, project="nowhere") as lost,
            pytest.raises(NotFoundError, match="no such project, or you are no member"),
        ):
            list(lost.runs())

    await asyncio.to_thread(ask)


async def test_events_of_a_client_of_one_project_are_its_own(shared: AppServer, url: str) -> None:
    def read_first_event() -> str:
        with Client(url, shared.tokens["zoe"], project="elsewhere") as within:
            return next(within.events(after=0)).type

    assert await asyncio.to_thread(read_first_event) in {"experiment", "run", "job"}


def parse_projects(out: str) -> set[str]:
    return {one["project"] for one in json.loads(out)}


async def test_a_command_takes_the_project_from_option_variable_and_memory(
    palestra: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists = ("runs", "--json")
    assert parse_projects((await palestra(*lists))[1]) == {"default", "elsewhere"}
    assert parse_projects((await palestra(*lists, "--project", "elsewhere"))[1]) == {"elsewhere"}
    assert parse_projects((await palestra("--project", "default", *lists))[1]) == {"default"}
    code, out, _ = await palestra("projects", "use", "elsewhere")
    assert (code, out.endswith("use elsewhere\n")) == (0, True)
    assert parse_projects((await palestra(*lists))[1]) == {"elsewhere"}
    monkeypatch.setenv("PALESTRA_PROJECT", "default")
    assert parse_projects((await palestra(*lists))[1]) == {"default"}
    assert parse_projects((await palestra(*lists, "--project", "*"))[1]) == {"default", "elsewhere"}
    monkeypatch.delenv("PALESTRA_PROJECT")
    code, _, err = await palestra("projects", "use", "nowhere")
    assert (code, "no such project" in err) == (1, True)
    assert (await palestra("projects", "use"))[1].endswith("use elsewhere\n")
    await palestra("projects", "use", "*")
    assert parse_projects((await palestra(*lists))[1]) == {"default", "elsewhere"}


async def test_tables_name_project_and_person_where_they_differ(palestra: Command) -> None:
    _, out, _ = await palestra("jobs")
    head, *rows = (line.split() for line in out.splitlines())
    assert head[:4] == ["job", "project", "user", "schedule"]
    assert {tuple(row[1:3]) for row in rows} == {
        ("default", "admin"),
        ("default", "zoe"),
        ("elsewhere", "zoe"),
    }
    _, out, _ = await palestra("jobs", "--mine", "--project", "elsewhere")
    head, *rows = (line.split() for line in out.splitlines())
    assert (head[:2], len(rows)) == (["job", "schedule"], 1)
    _, out, _ = await palestra("runs", "--user", "admin", "--ids")
    _, everything, _ = await palestra("runs", "--ids")
    assert 0 < len(out.split()) < len(everything.split())
    code, _, err = await palestra("runs", "--user", "admin", "--mine")
    assert (code, "not both" in err) == (2, True)


async def test_a_submission_without_a_project_says_how_to_name_one(
    palestra: Command, tmp_path: Path
) -> None:
    body = make_submission(seeds=[43]).model_dump_json()
    (tmp_path / "x.json").write_text(body)
    arguments = ("submit", "x.json", "--no-provenance")
    code, _, err = await palestra(*arguments)
    assert (code, "default, elsewhere" in err, "--project SLUG" in err) == (1, True, True)
    code, out, err = await palestra(*arguments, "--project", "default", "--json")
    assert code == 0, err
    assert json.loads(out)["project"] == "default"


async def test_login_removes_a_stored_project_of_which_the_user_is_no_member_any_more(
    shared: AppServer, palestra: Command, url: str, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(shared.tokens["zoe"])
    (tmp_path / "token").chmod(0o600)
    login = ("login", url, "--token-file", "token")
    _, out, _ = await palestra(*login)
    assert "projects default, elsewhere; `palestra projects use PROJECT` chooses one" in out
    await palestra("projects", "use", "default")
    assert "zoe, project default " in (await palestra(*login))[1]
    async with shared.database.write() as session:
        key = (shared.world.project_id, (await get_zoe_id(shared)))
        row = await session.get(MembershipRow, key)
        assert row is not None
        await session.delete(row)
    assert "zoe, project elsewhere " in (await palestra(*login))[1]
    assert (await palestra("projects", "use"))[1].endswith("use all your projects\n")
    async with shared.database.write() as session:
        role = Role.MEMBER.value
        session.add(MembershipRow(project_id=key[0], user_id=key[1], role=role))


async def get_zoe_id(shared: AppServer) -> str:
    async with shared.client("zoe") as client:
        found = (await client.get("/api/v1/session")).json()
    return str(found["user_id"])
