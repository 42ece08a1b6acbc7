"""`palestra change` and `palestra reorder`, on the application."""

import json

import pytest

from tests.app.api.serving import AppServer
from tests.app.api.test_project_commands import Command, palestra, url

__all__ = ["palestra", "url"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_waiting_job_is_changed(palestra: Command, shared: AppServer) -> None:
    job_id = (await shared.world.submit_one_job(seeds=[5_001], pool="default")).id
    options = ("--class", "idle", "--priority", "3", "--wall-seconds", "7200")
    code, out, err = await palestra("change", job_id, *options)
    assert (code, err) == (0, "")
    assert out.startswith(f"{job_id}  idle, priority 3, wall time 7200 s")
    changed = ("--wall-seconds", "default", "--max-attempts", "2", "--json")
    code, out, _ = await palestra("change", job_id, *changed)
    found = json.loads(out)
    assert code == 0
    assert (found["limits"]["wall_seconds"], found["limits"]["max_attempts"]) == (None, 2)
    assert (found["priority_class"], found["priority"]) == ("idle", 3)


async def test_a_waiting_job_is_moved(palestra: Command, shared: AppServer) -> None:
    options = {"pool": "default", "priority_class": "idle", "priority": 50}
    first = (await shared.world.submit_one_job(seeds=[5_002], **options)).id
    second = (await shared.world.submit_one_job(seeds=[5_003], **options)).id
    code, _, err = await palestra("reorder", second, "--before", first)
    assert (code, err) == (0, "")
    places = [(await shared.world.job(job_id)).position for job_id in (second, first)]
    assert places[0] is not None
    assert places == [places[0], places[0] + 1]
    assert (await palestra("reorder", second, "--last"))[0] == 0
    places = [(await shared.world.job(job_id)).position for job_id in (first, second)]
    assert sorted(places, key=str) == places


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("change", "job_1"), "nothing to change"),
        (("change", "job_1", "--wall-seconds", "soon"), "--wall-seconds soon"),
        (("change", "job_1", "--wall-seconds", "0"), "wall_seconds"),
        (("reorder", "job_1"), "--before JOB or --last"),
        (("reorder", "job_1", "--last", "--before", "job_2"), "--before JOB or --last"),
    ],
)
async def test_wrong_usage_is_told(
    palestra: Command, arguments: tuple[str, ...], said: str
) -> None:
    code, out, err = await palestra(*arguments)
    assert (code, out) == (2, "")
    assert said in err


async def test_a_job_that_has_ended_does_not_change(palestra: Command, shared: AppServer) -> None:
    code, _, err = await palestra("change", shared.names["finished_job"], "--priority", "1")
    assert code == 1
    assert "only jobs that wait in the queue are changed" in err
