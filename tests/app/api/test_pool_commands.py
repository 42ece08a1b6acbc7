"""`palestra pools`, `rotate-worker-secret` and `cancel` of a foreign job, on the application."""

import json
from collections.abc import Callable

import pytest

from tests.app.api.serving import AppServer
from tests.app.api.test_project_commands import Command, palestra, url

__all__ = ["palestra", "url"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_pool_is_managed_from_its_creation_to_its_deletion(palestra: Command) -> None:
    code, out, err = await palestra("pools", "create", "lab", "--admit", "default")
    assert (code, out, err) == (0, "created pool lab\n", "")
    await palestra("pools", "set", "lab", "--max-wall", "12h", "--default-wall", "90m")
    code, out, _ = await palestra("pools", "show", "lab", "--json")
    found = json.loads(out)
    assert (found["default_wall_seconds"], found["max_wall_seconds"]) == (5_400, 43_200)
    await palestra("pools", "set", "lab", "--default-wall", "none", "--shows-names")
    await palestra("pools", "pause", "lab", "--reason", "the fans are loud")
    _, out, _ = await palestra("pools", "list")
    (row,) = [line for line in out.splitlines() if line.startswith("lab")]
    assert row.rstrip().endswith("paused: the fans are loud")
    await palestra("pools", "resume", "lab")
    code, out, _ = await palestra("pools", "admit", "lab", "elsewhere", "--share", "2", "--json")
    assert [one["share"] for one in json.loads(out)["projects"]] == [1.0, 2.0]
    await palestra("pools", "remove", "lab", "elsewhere")
    _, out, _ = await palestra("pools", "show", "lab", "--json")
    found = json.loads(out)
    assert [one["project"] for one in found["projects"]] == ["default"]
    assert (found["shows_names"], found["default_wall_seconds"], found["paused_at"]) == (
        True,
        None,
        None,
    )
    code, out, _ = await palestra("pools", "delete", "lab")
    assert (code, out) == (0, "deleted pool lab\n")
    assert (await palestra("pools", "show", "lab"))[0] == 1


async def test_shares_of_a_pool_are_shown(palestra: Command) -> None:
    code, out, err = await palestra("pools", "shares", "default", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert sum(one["entitled"] for one in found["projects"]) == pytest.approx(1.0)
    code, out, _ = await palestra("pools", "shares", "default")
    assert code == 0
    assert out.split()[:6] == ["project", "person", "entitled", "used", "decayed", "device-hours"]


async def test_tokens_of_a_pool_are_created_listed_and_revoked(
    palestra: Command, shared: AppServer
) -> None:
    code, out, _ = await palestra("pools", "token", "default", "--days", "0", "--name", "rack 7")
    assert code == 0
    assert out.startswith("ple_")
    _, listed, _ = await palestra("pools", "tokens", "default", "--json")
    (made,) = [one for one in json.loads(listed) if one["name"] == "rack 7"]
    assert (made["secret"], made["expires_at"]) == (None, None)
    _, table, _ = await palestra("pools", "tokens", "default")
    assert "rack 7" in table
    assert (await palestra("pools", "revoke-token", "default", made["id"]))[0] == 0
    async with shared.client("user") as client:
        answer = await client.get(
            "/api/v1/session", headers={"Authorization": f"Bearer {out.strip()}"}
        )
    assert answer.status_code == 401


async def test_a_workers_secret_is_rotated_by_name(palestra: Command) -> None:
    code, out, _ = await palestra("rotate-worker-secret", "w2")
    assert (code, out) == (0, "w2 gets a new secret with its next heartbeat\n")
    _, out, _ = await palestra("workers", "--json")
    states = {one["name"]: one["secret_rotation"] for one in json.loads(out)}
    assert states["w2"] == "pending"


async def test_an_administrator_cancels_a_foreign_job(palestra: Command, shared: AppServer) -> None:
    job = shared.names["foreign_job"]
    assert (await palestra("jobs", "--json"))[1].find(job) < 0
    code, out, _ = await palestra("cancel", job, "--json")
    assert (code, json.loads(out)) == (0, [{"id": job, "state": "cancelled"}])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("set", "default"), "nothing to change"),
        (("set", "default", "--max-wall", "soon"), "--max-wall soon: give a time"),
        (("admit", "default", "default", "--share", "0"), "--share 0: give a number above 0"),
        (("create", "a b"), "name:"),
    ],
)
async def test_wrong_usage_is_named(
    palestra: Callable[..., object], arguments: tuple[str, ...], said: str
) -> None:
    code, _, err = await palestra("pools", *arguments)  # type: ignore[misc]
    assert code == 2
    assert said in err


async def test_windows_of_a_pool_are_planned_listed_and_cancelled(palestra: Command) -> None:
    code, out, err = await palestra(
        *("pools", "window", "add", "default", "--from", "2h", "--to", "4h", "--reason", "drivers")
    )
    assert (code, err) == (0, "")
    assert out.startswith("planned win_")
    assert ": maintenance from " in out
    code, out, _ = await palestra(
        *("pools", "window", "add", "default", "--to", "2999-01-01T00:00:00Z", "--json"),
        *("--for-project", "default", "--worker", "w1"),
    )
    assert code == 0
    made = json.loads(out)
    assert (made["kind"], made["has_begun"], made["workers"]) == ("reservation", True, ["w1"])
    _, out, _ = await palestra("pools", "window", "list", "default")
    assert "reservation for default" in out
    assert "drivers" in out
    _, out, _ = await palestra("pools", "window", "list", "default", "--json")
    for one in json.loads(out):
        code, out, _ = await palestra("pools", "window", "cancel", "default", one["id"])
        assert (code, out) == (0, f"cancelled {one['id']}\n")
    assert (await palestra("pools", "window", "list", "default", "--json"))[1] == "[]\n"


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        (("--to", "tomorrow"), 2, "--to must be a time with its zone"),
        (("--from", "2h", "--to", "1h"), 1, "before it begins"),
        (("--to", "1h", "--worker", "w0"), 1, "has no worker w0"),
        (("--to", "1h", "--for-user", "nobody"), 1, "There is no user nobody"),
    ],
)
async def test_faulty_windows_are_named(
    palestra: Command, arguments: tuple[str, ...], exit_code: int, said: str
) -> None:
    code, out, err = await palestra("pools", "window", "add", "default", *arguments)
    assert (code, out) == (exit_code, "")
    assert said in err
