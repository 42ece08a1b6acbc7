"""`palestra change` and `palestra reorder`, on the application."""

import json
from pathlib import Path

import pytest

from tests.app.api.serving import AppServer
from tests.app.api.test_project_commands import Command, palestra, url
from tests.support.server_fixture import make_definition

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


async def test_a_preview_changes_nothing(palestra: Command, shared: AppServer) -> None:
    options = {"pool": "default", "priority_class": "idle", "priority": 60}
    first = (await shared.world.submit_one_job(seeds=[5_020], **options)).id
    second = (await shared.world.submit_one_job(seeds=[5_021], **options)).id
    before = (await shared.world.job(second)).position
    assert before is not None
    code, out, err = await palestra("reorder", second, "--before", first, "--preview")
    assert (code, err) == (0, "")
    sentence, *rows = out.splitlines()
    assert sentence.endswith("1 other job of yours starts later.")
    assert rows[1].split()[:3] == [second, str(before), str(before - 1)]
    assert rows[2].split()[3:6] == [first, str(before - 1), str(before)]
    code, out, err = await palestra("change", second, "--priority", "70", "--preview", "--json")
    found = json.loads(out)
    assert (code, found["starts"][0]["new_place"], found["own"]["later"]) == (0, before - 1, 1)
    code, out, err = await palestra("change", first, second, "--class", "normal", "--preview")
    assert (code, out.startswith("The first of 2 jobs would "), err) == (0, True, "")
    assert [(await shared.world.job(one)).position for one in (first, second)] == [
        before - 1,
        before,
    ]


async def test_many_waiting_jobs_are_changed(palestra: Command, shared: AppServer) -> None:
    await shared.world.make_pool("bulk-change")
    options = {"pool": "bulk-change", "priority_class": "idle"}
    ids = [
        (await shared.world.submit_one_job(seeds=[seed], **options)).id for seed in (5_030, 5_031)
    ]
    selected = ("change", "--pool", "bulk-change", "--of-class", "idle", "--class", "normal")
    code, out, err = await palestra(*selected)
    assert (code, out) == (2, "")
    assert "2 jobs match. Repeat the command with --yes to change them." in err
    assert (await palestra(*selected, "--dry-run"))[1] == "2 jobs match.\n"
    code, out, err = await palestra(*selected, "--yes")
    assert (code, out, err) == (0, "2 of 2 jobs: asked to change\n", "")
    assert {(await shared.world.job(one)).priority_class for one in ids} == {"normal"}
    code, out, err = await palestra("change", *ids, "--priority", "4")
    assert (code, out, err) == (0, "2 of 2 jobs: asked to change\n", "")
    await shared.world.cancel(ids[0])
    code, out, err = await palestra("change", *ids, "--priority", "5")
    assert code == 1
    assert "1 of 2 jobs were left alone, since they are in another state" in err
    assert ids[0] in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("change", "job_1"), "nothing to change"),
        (("change", "--priority", "1"), "give IDs of jobs, or options that select jobs"),
        (("change", "job_1", "--mine", "--priority", "1"), "not both"),
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


async def test_jobs_wait_for_others(palestra: Command, shared: AppServer) -> None:
    first = await shared.world.submit_one_job(seeds=[5_010], pool="default")
    arguments = (first.run_ids[0], "--after", first.id, "--on", "any", "--json")
    code, out, err = await palestra("evaluate", *arguments)
    assert (code, err) == (0, "")
    made = json.loads(out)
    assert (made["after"], made["on"]) == ([first.id], "any")
    code, out, _ = await palestra("explain", made["id"])
    assert out == f"Starts once the job {first.id} has ended.\n" or out.startswith(
        f"Starts once the job {first.id} has ended."
    )
    code, _, err = await palestra("export", first.run_ids[0], "--after", "job_unknown")
    assert code == 1
    assert "This project has no such job" in err


async def test_a_submission_has_follow_ups(
    palestra: Command, shared: AppServer, tmp_path: Path
) -> None:
    file = tmp_path / "e.json"
    document = {"definition": make_definition(loop={"env_steps": 4_242}), "options": {}}
    file.write_text(json.dumps(document))
    options = ("--then", "evaluate,export", "--max-running", "3", "--no-provenance", "--json")
    code, out, err = await palestra("submit", str(file), *options)
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["max_running"] == 3
    jobs = await shared.world.list_jobs(experiment_id=found["id"])
    assert sorted(job.schedule for job in jobs) == ["evaluate", "export", "train"]
    code, _, err = await palestra("submit", str(file), "--then", "play")
    assert code == 2
    assert "--then play" in err
