"""Commands that change queued and running jobs, runs and experiments, against a real
HTTP server.
"""

import json

import pytest

from tests.support import api_samples
from tests.support.api_samples import JOB, RUN
from tests.support.commands import RunCommand
from tests.support.fake_http_server import Answer, FakeHttpServer, make_problem


def test_forget_worker_takes_the_name_of_a_worker(
    peer: FakeHttpServer, palestra: RunCommand
) -> None:
    """The command looks the worker's ID up."""
    worker = api_samples.make_worker(id=f"wrk_{'0' * 26}", name="gpu-1")
    peer.set_answers("GET", "/workers", Answer(200, api_samples.make_page(worker)))
    peer.set_answers("POST", f"/workers/{worker['id']}:forget", Answer(200, worker))
    code, out, _ = palestra("forget-worker", "gpu-1")
    assert (code, out) == (0, "gpu-1 can be enrolled again\n")
    code, _, errors = palestra("forget-worker", "gpu-2")
    assert code == 2
    assert "no worker 'gpu-2'" in errors
    assert "gpu-1" in errors


@pytest.mark.parametrize("verb", ["pause", "resume", "cancel"])
def test_a_job_is_controlled_by_its_id(
    peer: FakeHttpServer, palestra: RunCommand, verb: str
) -> None:
    peer.set_answers(
        "POST", f"/jobs/{JOB}:{verb}", Answer(200, api_samples.make_job(state="paused"))
    )
    code, out, _ = palestra(verb, JOB, "--reason", "why", "--json")
    assert (code, json.loads(out)[0]["state"]) == (0, "paused")
    assert peer.asked[0].body == {"reason": "why"}


def test_control_of_a_run_or_experiment_reaches_its_unfinished_jobs(
    peer: FakeHttpServer, palestra: RunCommand
) -> None:
    peer.set_answers("GET", f"/runs/{RUN}", Answer(200, api_samples.make_run_detail()))
    peer.set_answers("GET", "/experiments/exp", Answer(200, api_samples.make_experiment()))
    ended, evaluation = (
        api_samples.make_job(id="job_a", state="succeeded"),
        api_samples.make_job(id="job_b", schedule="evaluate"),
    )
    peer.set_answers(
        "GET",
        "/jobs",
        Answer(200, api_samples.make_page(api_samples.make_job(), ended, evaluation)),
    )
    for name in (JOB, "job_b"):
        peer.set_answers("POST", f"/jobs/{name}:pause", Answer(200, api_samples.make_job(id=name)))
        peer.set_answers("POST", f"/jobs/{name}:cancel", Answer(200, api_samples.make_job(id=name)))
    palestra("pause", RUN)
    palestra("cancel", "exp")
    assert [asked.path.rpartition("/")[2] for asked in peer.asked if asked.method == "POST"] == [
        f"{JOB}:pause",
        f"{JOB}:cancel",
        "job_b:cancel",
    ]
    code, _, err = palestra("resume", RUN)
    assert (code, "no job to resume" in err) == (1, True)


def test_control_of_a_run_names_the_other_runs_of_its_pack(
    peer: FakeHttpServer, palestra: RunCommand
) -> None:
    packed = api_samples.make_job(run_ids=[RUN, "run_b", "run_c"])
    peer.set_answers("GET", f"/runs/{RUN}", Answer(200, api_samples.make_run_detail()))
    peer.set_answers("GET", "/jobs", Answer(200, api_samples.make_page(packed)))
    peer.set_answers("POST", f"/jobs/{JOB}:cancel", Answer(200, packed))
    assert f"this was done to all 3 runs of {JOB}" in " ".join(palestra("cancel", RUN)[1].split())
    assert "runs of" not in palestra("cancel", JOB)[1]


def test_cancel_of_an_experiment_continues_after_a_refusal(
    peer: FakeHttpServer, palestra: RunCommand
) -> None:
    """Regression: a 409 for a job that had just ended kept the command from
    cancelling the others.
    """
    peer.set_answers("GET", "/experiments/exp", Answer(200, api_samples.make_experiment()))
    peer.set_answers(
        "GET",
        "/jobs",
        Answer(
            200,
            api_samples.make_page(
                *(api_samples.make_job(id=name) for name in ("job_a", "job_b", "job_c"))
            ),
        ),
    )
    peer.set_answers(
        "POST",
        "/jobs/job_a:cancel",
        Answer(200, api_samples.make_job(id="job_a", state="cancelling")),
    )
    peer.set_answers(
        "POST",
        "/jobs/job_b:cancel",
        Answer(409, make_problem(409, "already_final", "The job has already succeeded.")),
    )
    peer.set_answers(
        "POST",
        "/jobs/job_c:cancel",
        Answer(200, api_samples.make_job(id="job_c", state="cancelled")),
    )
    code, out, err = palestra("cancel", "exp", "--json")
    assert [(job["id"], job["state"]) for job in json.loads(out)] == [
        ("job_a", "cancelling"),
        ("job_c", "cancelled"),
    ]
    assert (code, err) == (
        1,
        "palestra: 1 of 3 jobs were not cancelled:\n  job_b: The job has already succeeded.\n",
    )


def test_archive_and_unarchive_send_their_actions(
    peer: FakeHttpServer, palestra: RunCommand
) -> None:
    """Regression: no command could restore an archived experiment."""
    peer.set_answers(
        "POST",
        "/experiments/exp:archive",
        Answer(200, api_samples.make_experiment(archived_at=api_samples.NOW)),
    )
    peer.set_answers(
        "POST", "/experiments/exp:unarchive", Answer(200, api_samples.make_experiment())
    )
    assert palestra("archive", "exp")[1] == "archived  sample-0123456789abcdef\n"
    assert palestra("unarchive", "exp")[1] == "back in lists  sample-0123456789abcdef\n"
    assert json.loads(palestra("unarchive", "exp", "--json")[1])["archived_at"] is None


def test_cancel_of_a_finished_job_says_so(peer: FakeHttpServer, palestra: RunCommand) -> None:
    peer.set_answers(
        "POST",
        f"/jobs/{JOB}:cancel",
        Answer(409, make_problem(409, "final", "The job has already succeeded.")),
    )
    assert palestra("cancel", JOB) == (1, "", "palestra: The job has already succeeded.\n")


def test_retry_trains_a_failed_run_again(peer: FakeHttpServer, palestra: RunCommand) -> None:
    """The command sends the run's ID and prints the new job."""
    peer.set_answers(
        "POST", f"/runs/{RUN}:retry", Answer(201, api_samples.make_job(state="queued"))
    )
    assert palestra("retry", RUN)[:2] == (0, f"queued  {JOB}\n")
    assert peer.asked[0].body == {"origin": "newest", "allow_code_change": False, "reason": ""}
    code, out, _ = palestra(
        "retry", RUN, "--from", "start", "--allow-code-change", "--reason", "why", "--json"
    )
    assert (code, json.loads(out)["id"]) == (0, JOB)
    assert peer.asked[1].body == {"origin": "start", "allow_code_change": True, "reason": "why"}
    assert palestra("retry", RUN, "--from", "middle")[0] == 2


def test_resume_has_an_option_that_permits_changed_code(
    peer: FakeHttpServer, palestra: RunCommand
) -> None:
    """Without the option a resume with changed code is refused."""
    refusal = make_problem(409, "code_changed", "The experiment was made with tiny 1.0.")
    peer.set_answers(
        "POST",
        f"/jobs/{JOB}:resume",
        Answer(409, refusal),
        Answer(200, api_samples.make_job(state="queued")),
    )
    code, _, err = palestra("resume", JOB)
    assert (code, "made with tiny 1.0" in err) == (1, True)
    assert palestra("resume", JOB, "--allow-code-change")[0] == 0
    assert peer.asked[1].body == {"reason": "", "allow_code_change": True}
