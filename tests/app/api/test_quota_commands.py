"""`palestra pools quotas | set-quota` and `palestra limit`, on the application."""

import json

import pytest

from tests.app.api.serving import AppServer
from tests.app.api.test_project_commands import Command, palestra, url

__all__ = ["palestra", "url"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_quotas_are_set_and_shown(palestra: Command, shared: AppServer) -> None:
    await shared.world.make_pool("limited")
    where = ("limited", "default")
    code, _, err = await palestra("pools", "set-quota", *where, "--queued", "50", "--running", "4")
    assert (code, err) == (0, "")
    await palestra("pools", "set-quota", *where, "--each-person", "--device-hours", "12.5")
    await palestra("pools", "set-quota", *where, "--person", "admin", "--queued", "7")
    code, out, _ = await palestra("pools", "quotas", *where, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["of_project"]["limits"] == {"queued": 50, "running": 4, "device_hours": None}
    assert found["each_person"]["device_hours"] == 12.5
    own = next(one for one in found["persons"] if one["user"] == "admin")
    assert own["left"] == {"queued": 7, "running": None, "device_hours": None}
    code, out, _ = await palestra("pools", "quotas", *where)
    assert "0 of 50" in out
    assert "admin (own limits)" in out
    assert "each person: queued any, running any, device-hours 12.5" in out
    code, out, err = await palestra("usage")
    assert (code, err) == (0, "")
    assert "left of the quotas; device-hours within 7 days" in out
    rows = [line.split() for line in out.splitlines() if line.startswith("limited")]
    assert ["limited", "you", "in", "default", "7", "of", "7", "any", "any"] in rows
    assert ["limited", "all", "of", "default", "50", "of", "50", "4", "of", "4", "any"] in rows
    await palestra("pools", "set-quota", *where, "--person", "admin", "--clear")
    await palestra("pools", "set-quota", *where, "--queued", "none")
    _, out, _ = await palestra("pools", "quotas", *where, "--json")
    found = json.loads(out)
    assert found["of_project"]["limits"] == {"queued": None, "running": 4, "device_hours": None}
    assert not any(one["has_own_limits"] for one in found["persons"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "nothing to change"),
        (("--queued", "many"), "--queued many: give a number, or none"),
        (("--queued", "-1"), "queued"),
        (("--clear",), "--clear goes with --person"),
        (("--each-person", "--person", "admin", "--queued", "1"), "either"),
    ],
)
async def test_wrong_usage_is_explained(
    palestra: Command, options: tuple[str, ...], said: str
) -> None:
    code, out, err = await palestra("pools", "set-quota", "default", "default", *options)
    assert (code, out) == (2, "")
    assert said in err


async def test_the_running_jobs_of_an_experiment_are_limited(
    palestra: Command, shared: AppServer
) -> None:
    job = await shared.world.submit_one_job(seeds=[6_001], pool="default")
    code, out, err = await palestra("limit", job.experiment_id, "--max-running", "2")
    assert (code, err) == (0, "")
    assert out == f"{job.experiment_id}  runs 2 jobs at the same time\n"
    code, out, _ = await palestra("limit", job.experiment_id, "--max-running", "none", "--json")
    assert (code, json.loads(out)["max_running"]) == (0, None)
    code, _, err = await palestra("limit", job.experiment_id, "--max-running", "few")
    assert code == 2
    assert "--max-running few" in err
