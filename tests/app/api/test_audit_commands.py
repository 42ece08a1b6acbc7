"""`palestra audit` and the audit methods of the client, against the real application."""

import asyncio
import json
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from sqlalchemy import func, select

from app.db.models import AuditRow
from palestra.cli.main import main
from palestra.client import Client
from palestra.contract.audit import AuditQuery
from palestra.errors import ForbiddenError, UnreachableError
from tests.app.api.serving import AppServer
from tests.support.fake_http_server import Answer, run_fake_server
from tests.support.listening import listening

pytestmark = pytest.mark.asyncio(loop_scope="module")

Command = Callable[..., "asyncio.Future[tuple[int, str, str]]"]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def url(shared: AppServer) -> AsyncIterator[str]:
    async with listening(shared.app) as address:
        yield address


@pytest.fixture
def run_audit(
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
        code = await asyncio.to_thread(main, ["audit", *arguments])
        captured = capfdbinary.readouterr()
        return code, captured.out.decode(), captured.err.decode()

    return run


async def count_entries(shared: AppServer) -> int:
    """Writes the entries of the refusals of other tests; returns the number of all entries."""
    await shared.app.state.refusals.flush(shared.database, everything=True)
    async with shared.database.read() as session:
        return await session.scalar(select(func.count(AuditRow.id))) or 0


async def test_the_client_yields_every_entry_and_exports_the_same(
    shared: AppServer, url: str
) -> None:
    number = await count_entries(shared)
    with Client(url, shared.tokens["user"]) as client:
        listed = await asyncio.to_thread(lambda: list(client.audit()))
        lines = await asyncio.to_thread(lambda: list(client.export_audit()))
        query = AuditQuery(user="admin", action="token.", until=listed[0].at)
        tokens = await asyncio.to_thread(lambda: list(client.audit(query)))
        exported = await asyncio.to_thread(lambda: list(client.export_audit(query)))
    assert len(listed) == number
    assert [json.loads(line)["id"] for line in lines] == [entry.id for entry in reversed(listed)]
    assert tokens
    assert {entry.object_type for entry in tokens} == {"token"}
    assert len(exported) == len(tokens)


async def test_the_client_names_the_missing_scope(shared: AppServer, url: str) -> None:
    with Client(url, shared.tokens["reader"]) as client:
        with pytest.raises(ForbiddenError, match="scope admin"):
            await asyncio.to_thread(lambda: list(client.audit()))
        with pytest.raises(ForbiddenError, match="scope admin"):
            await asyncio.to_thread(lambda: list(client.export_audit()))


async def test_an_export_that_breaks_off_is_not_taken_for_a_whole_one() -> None:
    with run_fake_server() as peer, Client(peer.url, "plr_test") as client:
        headers = {"Content-Length": "100", "Connection": "close"}
        peer.set_answers(
            "GET", "/audit:export", Answer(raw=b'{"id": 1}\n{"id": 2}\n', headers=headers)
        )
        with pytest.raises(UnreachableError):
            list(client.export_audit())


async def test_the_command_lists_entries(shared: AppServer, run_audit: Command) -> None:
    code, out, _ = await run_audit("list", "--action", "token.", "--user", "admin", "--limit", "3")
    assert code == 0
    head, *rows = out.splitlines()
    assert head.split() == [
        "time",
        "person",
        "action",
        "object",
        "outcome",
        "address",
        "credential",
        "details",
    ]
    assert len(rows) == 3
    assert all(" admin " in row and " token." in row and " allowed " in row for row in rows)
    code, out, _ = await run_audit("list", "--json", "--user", "admin", "--limit", "100000")
    entries = json.loads(out)
    assert {entry["user"] for entry in entries} == {"admin"}
    job = shared.names["queued_job"]
    code, out, _ = await run_audit("list", "--object", f"job/{job}", "--json")
    assert {entry["object_id"] for entry in json.loads(out)} <= {job}
    code, out, _ = await run_audit("list", "--refused", "--json")
    assert {entry["outcome"] for entry in json.loads(out)} <= {"refused"}
    for since, is_found in (("2026-03-01T00:00:00+02:00", True), ("2999-03-01T00:00:00Z", False)):
        code, out, _ = await run_audit("list", "--json", "--since", since)
        assert (code, bool(json.loads(out))) == (0, is_found)


async def test_the_command_exports_to_a_file_of_its_own(
    shared: AppServer, run_audit: Command, tmp_path: Path
) -> None:
    file = tmp_path / "audit.jsonl"
    number = await count_entries(shared)
    assert await run_audit("export", "audit.jsonl") == (0, f"{number} entries in audit.jsonl\n", "")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_bytes()
    assert len([json.loads(line) for line in before.splitlines()]) == number
    code, _, errors = await run_audit("export", "audit.jsonl")
    assert (code, "audit.jsonl: File exists. Name a file" in errors) == (2, True)
    assert file.read_bytes() == before
    code, out, _ = await run_audit("export", "--action", "token.create")
    assert {json.loads(line)["action"] for line in out.splitlines()} == {"token.create"}
    code, out, _ = await run_audit("export", "again.jsonl", "--json")
    assert json.loads(out) == {"entries": number, "path": str(tmp_path / "again.jsonl")}


async def test_a_refused_export_leaves_no_file(
    shared: AppServer, run_audit: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PALESTRA_TOKEN", shared.tokens["reader"])
    code, _, errors = await run_audit("export", "audit.jsonl")
    assert (code, "scope admin" in errors) == (1, True)
    assert not (tmp_path / "audit.jsonl").exists()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--since", "yesterday"], "--since must be a time with its zone"),
        (["--until", "2026-03-01T12:00:00"], "--until must be a time with its zone"),
        (["--user", "x" * 65], "--user must have at most 64 characters"),
        (["--object", "job/" + "x" * 201], "--object must have at most 200 characters"),
    ],
)
async def test_a_wrong_option_is_named(run_audit: Command, options: list[str], error: str) -> None:
    for command in ("list", "export"):
        code, _, errors = await run_audit(command, *options)
        assert code == 2
        assert error in errors
