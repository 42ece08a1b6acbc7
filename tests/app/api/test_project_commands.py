"""`palestra projects` and `palestra members`, against the real application."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

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
        code = await asyncio.to_thread(main, arguments)
        captured = capfdbinary.readouterr()
        return code, captured.out.decode(), captured.err.decode()

    return run


async def test_a_project_is_managed_from_its_creation_to_the_archive(palestra: Command) -> None:
    code, out, err = await palestra("projects", "create", "Lab Two", "--storage-limit", "2G")
    assert (code, out, err) == (0, "created project lab-two\n", "")
    code, out, _ = await palestra("projects", "show", "lab-two", "--json")
    found = json.loads(out)
    assert (found["name"], found["storage_limit"]) == ("Lab Two", 2_000_000_000)
    await palestra("projects", "change", "lab-two", "--name", "Lab 2", "--storage-limit", "none")
    await palestra("projects", "archive", "lab-two")
    code, out, _ = await palestra("projects", "list")
    (row,) = [line for line in out.splitlines() if line.startswith("lab-two")]
    assert "Lab 2" in row
    assert row.rstrip().endswith("archived")
    await palestra("projects", "restore", "lab-two")
    _, out, _ = await palestra("projects", "show", "lab-two", "--json")
    found = json.loads(out)
    assert (found["name"], found["archived_at"], found["storage_limit"]) == ("Lab 2", None, None)


async def test_members_are_added_changed_and_removed(palestra: Command) -> None:
    await palestra("projects", "create", "crew")
    code, out, err = await palestra("members", "set", "crew", "zoe", "member")
    assert (code, out) == (0, "zoe is now a member of crew\n")
    code, out, _ = await palestra("members", "list", "crew")
    assert [line.split()[:2] for line in out.splitlines()] == [
        ["user", "name"],
        ["admin", "maintainer"],
        ["zoe", "member"],
    ]
    code, out, _ = await palestra("members", "remove", "crew", "zoe")
    assert (code, out) == (0, "removed zoe\n")
    code, _, err = await palestra("members", "remove", "crew", "zoe")
    assert code == 1
    assert "no member of the project" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("projects", "change", "default"), "nothing to change: give --name"),
        (("projects", "create", " "), "name: must not be blank"),
        (("projects", "create", "x", "--storage-limit", "2Q"), "--storage-limit 2Q: give a size"),
        (("projects", "create", "x", "--slug", "No Slug"), "slug: "),
        (("members", "set", "default", "zoe", "king"), "king"),
    ],
)
async def test_wrong_usage_is_named(
    palestra: Command, arguments: tuple[str, ...], said: str
) -> None:
    code, _, err = await palestra(*arguments)
    assert code == 2
    assert said in err


async def test_a_project_is_deleted_and_restored(palestra: Command) -> None:
    await palestra("projects", "create", "attic")
    code, _, err = await palestra("projects", "delete", "attic", "--yes", "attic")
    assert code == 1
    assert "Archive it first" in err
    await palestra("projects", "archive", "attic")
    code, _, err = await palestra("projects", "delete", "attic")
    assert (code, "confirm with --yes attic" in err) == (1, True)
    code, _, err = await palestra("projects", "delete", "attic", "--yes", "Attic")
    assert (code, "Type the slug exactly" in err) == (1, True)
    code, out, err = await palestra("projects", "delete", "attic", "--yes", "attic")
    assert (code, err) == (0, "")
    assert out.replace("\n", " ").startswith("deleted project attic; 0 jobs are ending; an admin")
    code, out, _ = await palestra("projects", "deleted")
    (row,) = [line for line in out.splitlines() if line.startswith("attic")]
    assert " admin " in row
    _, out, _ = await palestra("projects", "deleted", "--json")
    assert [found["slug"] for found in json.loads(out)] == ["attic"]
    code, out, _ = await palestra("projects", "undelete", "attic")
    assert (code, out) == (0, "restored project attic; it is archived\n")
    code, _, err = await palestra("projects", "undelete", "attic")
    assert (code, "no such deleted project" in err) == (1, True)


async def test_thresholds_are_set_listed_used_and_removed(palestra: Command) -> None:
    of_loss = ("default", "small-loss", "loss", "--at-most", "--", "-0.5")
    code, out, err = await palestra("thresholds", "set", *of_loss)
    assert (code, err) == (0, "")
    assert "filtered and sorted by reached.small-loss" in out
    code, out, _ = await palestra("thresholds", "list", "default")
    (row,) = [line for line in out.splitlines() if line.startswith("small-loss")]
    assert "at most -0.5" in row
    used = ("--filter", "reached.small-loss<5", "--sort", "reached.small-loss")
    assert (await palestra("runs", *used))[0] == 0
    code, _, err = await palestra("thresholds", "set", "default", "Solved", "loss", "1")
    assert code != 0
    assert "path/threshold" in err or "threshold" in err
    code, _, err = await palestra("thresholds", "set", "default", "solved", "a b", "1")
    assert (code, "series" in err) == (2, True)
    assert (await palestra("thresholds", "remove", "default", "small-loss"))[1] == (
        "removed small-loss\n"
    )
    code, _, err = await palestra("runs", *used)
    assert code != 0
    assert "threshold of no project" in err
