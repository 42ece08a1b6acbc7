"""Every command against a real HTTP server: what it asks, what it prints, how it ends."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palestra.cli.server_address import logins_path
from palestra.contract.catalogue import Catalogue
from tests.support import api_samples
from tests.support.api_samples import JOB, RUN
from tests.support.fake_http_server import Answer, Peer, problem
from tests.support.server_fixture import walking

Run = Callable[..., tuple[int, str, str]]
DOCUMENT = json.dumps({"definition": api_samples.definition(), "options": {"seeds": [0]}})


def test_submit(peer: Peer, palestra: Run) -> None:
    peer.on(
        "POST",
        "/experiments",
        Answer(201, api_samples.experiment()),
        Answer(200, api_samples.experiment()),
    )
    code, out, _ = palestra(
        "submit", "x.yaml", "--seeds", "0-2", "--pool", "gpu", "--priority", "5"
    )
    assert (code, "new experiment  sample-0123456789abcdef" in out) == (0, True)
    sent = peer.asked[0].body
    assert sent["options"]["seeds"] == [0, 1, 2]
    assert (sent["options"]["pool"], sent["options"]["priority"]) == ("gpu", 5)
    assert sent["provenance"]["packages"]
    code, out, _ = palestra("submit", "x.yaml", "--no-provenance", "--json")
    assert json.loads(out)["id"] == "sample-0123456789abcdef"
    assert peer.asked[1].body["provenance"] == {}


def test_the_option_code_is_refused_with_the_way_that_works(peer: Peer, palestra: Run) -> None:
    """Line 11: it changed the ID and nothing else."""
    code, out, err = palestra("submit", "x.yaml", "--code", str(Path(__file__).parent))
    assert (code, out, peer.asked) == (2, "", [])
    assert "--code: the state of a work tree changed the experiment's ID and nothing else" in err
    assert "whose entry points name the agent or the environment" in err
    assert "--code" not in palestra("submit", "--help")[1]


def test_submit_prints_warnings(peer: Peer, palestra: Run) -> None:
    """Line 15.26: beside the output, so that programs still read JSON."""
    told = {
        "code": "no_updates",
        "pointer": "/definition/agent/learning_starts",
        "message": "no update is made",
    }
    peer.on("POST", "/experiments", Answer(201, api_samples.experiment(warnings=[told])))
    code, out, err = palestra("submit", "x.yaml", "--no-provenance", "--json")
    assert (code, json.loads(out)["warnings"]) == (0, [told])
    assert "warning: definition.agent.learning_starts: no update is made" in " ".join(err.split())
    peer.on("POST", "/experiments", Answer(201, api_samples.experiment()))
    assert palestra("submit", "x.yaml", "--no-provenance")[2] == ""


@pytest.mark.parametrize(("state", "expected"), [("succeeded", 0), ("failed", 1)])
def test_submit_and_watch(peer: Peer, palestra: Run, state: str, expected: int) -> None:
    peer.on("POST", "/experiments", Answer(201, api_samples.experiment()))
    done = api_samples.run(state=state, latest_evaluation=api_samples.evaluation(481.0))
    peer.on(
        "GET",
        "/runs",
        Answer(200, api_samples.page(api_samples.run())),
        Answer(200, api_samples.page(done)),
    )
    code, out, _ = palestra("submit", "x.yaml", "--watch")
    assert code == expected
    assert "evaluation 481.0 ± 1.0" in out


def test_watch_shows_the_metrics_of_a_supervised_run(peer: Peer, palestra: Run) -> None:
    evaluated = api_samples.evaluation(-0.25, metrics={"loss": 0.25, "accuracy": 0.9375})
    peer.on(
        "GET",
        "/runs",
        Answer(
            200, api_samples.page(api_samples.run(state="succeeded", latest_evaluation=evaluated))
        ),
    )
    code, out, _ = palestra("watch", "sample-0123456789abcdef")
    assert code == 0
    assert "accuracy 0.9375  loss 0.2500" in out


def test_one_episode_has_no_spread(peer: Peer, palestra: Run) -> None:
    only = api_samples.evaluation(481.0, episodes=1, stdev=0.0)
    peer.on(
        "GET",
        "/runs",
        Answer(200, api_samples.page(api_samples.run(state="succeeded", latest_evaluation=only))),
    )
    out = palestra("watch", "sample-0123456789abcdef")[1]
    assert "evaluation 481.0" in out
    assert "±" not in out
    peer.on("POST", f"/runs/{RUN}/jobs", Answer(201, api_samples.job(state="queued")))
    peer.on("GET", f"/jobs/{JOB}", Answer(200, api_samples.job(state="succeeded")))
    peer.on("GET", f"/runs/{RUN}/evaluations", Answer(200, api_samples.page(only)))
    row = palestra("evaluate", RUN, "--wait", "--episodes", "1")[1].splitlines()[-1].split()
    assert row == ["500", "1", "481.0", "-", "480.0", "481.0", "482.0"]


def test_odd_file_names_are_taken_literally(peer: Peer, palestra: Run, tmp_path: Path) -> None:
    peer.on("POST", "/experiments", Answer(201, api_samples.experiment()))
    for name in ("name; rm -rf ~", "-x.yaml", "*.yaml"):
        (tmp_path / name).write_text(DOCUMENT)
        assert palestra("submit", "--no-provenance", "--", name)[0] == 0


def test_lists(peer: Peer, palestra: Run) -> None:
    peer.on(
        "GET", "/experiments", Answer(200, api_samples.page(api_samples.experiment(id="[bold]x")))
    )
    peer.on(
        "GET",
        "/runs",
        Answer(200, api_samples.page(api_samples.run(latest_evaluation=api_samples.evaluation()))),
    )
    peer.on("GET", "/jobs", Answer(200, api_samples.page(api_samples.job(waiting="no free slot"))))
    peer.on("GET", "/workers", Answer(200, api_samples.page()))
    assert "[bold]x" in palestra("experiments")[1]
    assert "480.0" in palestra("runs", "exp")[1]
    assert "no free slot" in palestra("jobs", RUN)[1]
    assert peer.asked[2].query["run"] == RUN
    assert palestra("workers")[0] == 0
    for command in ("experiments", "runs", "jobs", "workers"):
        assert isinstance(json.loads(palestra(command, "--json")[1]), list)


def test_a_worker_is_forgotten_by_its_name(peer: Peer, palestra: Run) -> None:
    """Line 15.17."""
    worker = api_samples.worker(id=f"wrk_{'0' * 26}", name="gpu-1")
    peer.on("GET", "/workers", Answer(200, api_samples.page(worker)))
    peer.on("POST", f"/workers/{worker['id']}:forget", Answer(200, worker))
    code, out, _ = palestra("forget-worker", "gpu-1")
    assert (code, out) == (0, "gpu-1 can be enrolled again\n")
    code, _, errors = palestra("forget-worker", "gpu-2")
    assert code == 2
    assert "no worker 'gpu-2'" in errors
    assert "gpu-1" in errors


@pytest.mark.parametrize("verb", ["pause", "resume", "cancel"])
def test_control_of_a_job(peer: Peer, palestra: Run, verb: str) -> None:
    peer.on("POST", f"/jobs/{JOB}:{verb}", Answer(200, api_samples.job(state="paused")))
    code, out, _ = palestra(verb, JOB, "--reason", "why", "--json")
    assert (code, json.loads(out)[0]["state"]) == (0, "paused")
    assert peer.asked[0].body == {"reason": "why"}


def test_control_of_a_run_and_of_an_experiment(peer: Peer, palestra: Run) -> None:
    peer.on("GET", f"/runs/{RUN}", Answer(200, api_samples.run_detail()))
    peer.on("GET", "/experiments/exp", Answer(200, api_samples.experiment()))
    ended, evaluation = (
        api_samples.job(id="job_a", state="succeeded"),
        api_samples.job(id="job_b", schedule="evaluate"),
    )
    peer.on("GET", "/jobs", Answer(200, api_samples.page(api_samples.job(), ended, evaluation)))
    for name in (JOB, "job_b"):
        peer.on("POST", f"/jobs/{name}:pause", Answer(200, api_samples.job(id=name)))
        peer.on("POST", f"/jobs/{name}:cancel", Answer(200, api_samples.job(id=name)))
    palestra("pause", RUN)
    palestra("cancel", "exp")
    assert [asked.path.rpartition("/")[2] for asked in peer.asked if asked.method == "POST"] == [
        f"{JOB}:pause",
        f"{JOB}:cancel",
        "job_b:cancel",
    ]
    code, _, err = palestra("resume", RUN)
    assert (code, "no job to resume" in err) == (1, True)


def test_control_of_a_run_says_what_it_does_to_the_others_of_its_pack(
    peer: Peer, palestra: Run
) -> None:
    packed = api_samples.job(run_ids=[RUN, "run_b", "run_c"])
    peer.on("GET", f"/runs/{RUN}", Answer(200, api_samples.run_detail()))
    peer.on("GET", "/jobs", Answer(200, api_samples.page(packed)))
    peer.on("POST", f"/jobs/{JOB}:cancel", Answer(200, packed))
    assert f"this was done to all 3 runs of {JOB}" in " ".join(palestra("cancel", RUN)[1].split())
    assert "runs of" not in palestra("cancel", JOB)[1]


def test_cancel_of_an_experiment_goes_on_behind_a_refusal(peer: Peer, palestra: Run) -> None:
    """Line 15.24: the first 409, of a job that had just ended, kept the command from all the
    others.
    """
    peer.on("GET", "/experiments/exp", Answer(200, api_samples.experiment()))
    peer.on(
        "GET",
        "/jobs",
        Answer(
            200,
            api_samples.page(*(api_samples.job(id=name) for name in ("job_a", "job_b", "job_c"))),
        ),
    )
    peer.on(
        "POST", "/jobs/job_a:cancel", Answer(200, api_samples.job(id="job_a", state="cancelling"))
    )
    peer.on(
        "POST",
        "/jobs/job_b:cancel",
        Answer(409, problem(409, "already_final", "The job has already succeeded.")),
    )
    peer.on(
        "POST", "/jobs/job_c:cancel", Answer(200, api_samples.job(id="job_c", state="cancelled"))
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


def test_archive_and_unarchive(peer: Peer, palestra: Run) -> None:
    """Line 15.24: archive was final, and no command did it."""
    peer.on(
        "POST",
        "/experiments/exp:archive",
        Answer(200, api_samples.experiment(archived_at=api_samples.NOW)),
    )
    peer.on("POST", "/experiments/exp:unarchive", Answer(200, api_samples.experiment()))
    assert palestra("archive", "exp")[1] == "archived  sample-0123456789abcdef\n"
    assert palestra("unarchive", "exp")[1] == "back in lists  sample-0123456789abcdef\n"
    assert json.loads(palestra("unarchive", "exp", "--json")[1])["archived_at"] is None


def test_cancel_of_a_finished_job_says_so(peer: Peer, palestra: Run) -> None:
    peer.on(
        "POST",
        f"/jobs/{JOB}:cancel",
        Answer(409, problem(409, "final", "The job has already succeeded.")),
    )
    assert palestra("cancel", JOB) == (1, "", "palestra: The job has already succeeded.\n")


def test_evaluate(peer: Peer, palestra: Run) -> None:
    peer.on("POST", f"/runs/{RUN}/jobs", Answer(201, api_samples.job(state="queued")))
    peer.on("GET", f"/jobs/{JOB}", Answer(200, api_samples.job(state="succeeded")))
    peer.on(
        "GET",
        f"/runs/{RUN}/evaluations",
        Answer(200, api_samples.page(api_samples.evaluation(477.0))),
    )
    assert JOB in palestra("evaluate", RUN)[1]
    code, out, _ = palestra("evaluate", RUN, "--wait", "--json", "--episodes", "5", "--seed", "3")
    assert (code, json.loads(out)["mean"]) == (0, 477.0)
    assert "477.0" in palestra("evaluate", RUN, "--wait")[1]


def test_evaluate_follows_a_training(peer: Peer, palestra: Run) -> None:
    peer.on(
        "POST",
        f"/runs/{RUN}/jobs",
        Answer(201, api_samples.job(state="queued", schedule="continuous_eval")),
    )
    peer.on("GET", f"/jobs/{JOB}", Answer(200, api_samples.job(state="succeeded")))
    made = [api_samples.evaluation(mean, env_step=step) for step, mean in ((900, 9.0), (300, 3.0))]
    peer.on("GET", f"/runs/{RUN}/evaluations", Answer(200, api_samples.page(*made)))
    code, out, _ = palestra("evaluate", RUN, "--follow", "--throttle", "2", "--wait", "--json")
    assert (code, [row["mean"] for row in json.loads(out)]) == (0, [3.0, 9.0])
    assert (peer.asked[0].body["schedule"], peer.asked[0].body["evaluate"]["throttle_seconds"]) == (
        "continuous_eval",
        2,
    )
    assert palestra("evaluate", RUN, "--follow", "--on-train-data")[0] == 0
    assert peer.asked[-1].body["schedule"] == "continuous_eval_on_train_data"


@pytest.mark.parametrize(
    "options",
    [
        ("--throttle", "3"),
        ("--again",),
        ("--follow", "--again"),
        ("--follow", "--snapshot", "best"),
        ("--follow", "--on-train-data", "--seed", "1"),
    ],
)
def test_options_of_evaluate_that_do_not_go_together(
    peer: Peer, palestra: Run, options: tuple[str, ...]
) -> None:
    assert palestra("evaluate", RUN, *options)[0] == 2
    assert not peer.asked


def test_test(peer: Peer, palestra: Run) -> None:
    peer.on(
        "POST", f"/runs/{RUN}/jobs", Answer(201, api_samples.job(state="queued", schedule="test"))
    )
    peer.on("GET", f"/jobs/{JOB}", Answer(200, api_samples.job(state="succeeded")))
    peer.on(
        "GET",
        f"/runs/{RUN}/evaluations",
        Answer(200, api_samples.page(api_samples.evaluation(12.0, source="test"))),
    )
    assert "12.0" in palestra("test", RUN, "--wait")[1]
    assert peer.asked[0].body["schedule"] == "test"


def test_submit_with_a_schedule(peer: Peer, palestra: Run) -> None:
    peer.on("POST", "/experiments", Answer(201, api_samples.experiment()))
    assert (
        palestra(
            "submit", "x.yaml", "--schedule", "continuous_train_and_evaluate", "--no-provenance"
        )[0]
        == 0
    )
    assert peer.asked[0].body["options"]["schedule"] == "continuous_train_and_evaluate"
    code, _, err = palestra("submit", "x.yaml", "--schedule", "continuous_eval")
    assert (code, "palestra evaluate" in err) == (2, True)
    assert palestra("submit", "x.yaml", "--schedule", "nothing")[0] == 2


def test_a_failed_evaluation_is_a_failure(peer: Peer, palestra: Run) -> None:
    peer.on("POST", f"/runs/{RUN}/jobs", Answer(201, api_samples.job(state="queued")))
    failed = api_samples.job(state="failed", failure={"message": "The snapshot is gone."})
    peer.on("GET", f"/jobs/{JOB}", Answer(200, failed))
    code, _, err = palestra("evaluate", RUN, "--wait")
    assert (code, "The snapshot is gone." in err) == (1, True)


def _log(first: int, *texts: str, complete: bool) -> dict[str, Any]:
    lines = [
        {"n": first + n, "attempt_id": "att", "stream": "stdout", "wall": 1.0, "text": text}
        for n, text in enumerate(texts)
    ]
    return {
        "run_id": RUN,
        "lines": lines,
        "next_after": first + len(texts) - 1,
        "complete": complete,
    }


def test_logs(peer: Peer, palestra: Run) -> None:
    peer.on(
        "GET",
        f"/runs/{RUN}/log",
        Answer(200, _log(1, "one [red]", "\x1b[31mtwo", complete=False)),
        Answer(200, _log(3, "three", complete=True)),
    )
    code, out, _ = palestra("logs", RUN)
    assert (code, out) == (0, "one [red]\n\ufffd[31mtwo\nthree\n")
    assert peer.asked[1].query["after"] == "2"


def test_logs_follow_until_the_run_ended(peer: Peer, palestra: Run) -> None:
    pieces = [_log(1, "a", complete=True), _log(2, "b", complete=True), _log(3, complete=True)]
    peer.on("GET", f"/runs/{RUN}/log", *(Answer(200, piece) for piece in pieces))
    peer.on(
        "GET",
        f"/runs/{RUN}",
        Answer(200, api_samples.run_detail()),
        Answer(200, api_samples.run_detail(state="failed")),
    )
    _, out, _ = palestra("logs", RUN, "--follow", "--json")
    assert [json.loads(line)["text"] for line in out.splitlines()] == ["a", "b"]


def test_watch_of_a_run_shows_its_experiment(peer: Peer, palestra: Run) -> None:
    peer.on("GET", f"/runs/{RUN}", Answer(200, api_samples.run_detail()))
    peer.on("GET", "/runs", Answer(200, api_samples.page(api_samples.run(state="succeeded"))))
    code, out, _ = palestra("watch", RUN, "--json")
    assert (code, json.loads(out)["state"]) == (0, "succeeded")
    assert peer.asked[1].query["experiment"] == "sample-0123456789abcdef"


def test_provenance(peer: Peer, palestra: Run) -> None:
    record = {
        "run_id": RUN,
        "experiment_id": "x",
        "seed": 0,
        "submission": {"command": "palestra submit"},
        "attempts": [],
    }
    peer.on("GET", f"/runs/{RUN}/provenance", Answer(200, record))
    assert json.loads(palestra("provenance", RUN)[1])["submission"]["command"] == "palestra submit"


def test_login_keeps_the_token_for_this_user_only(
    peer: Peer, palestra: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text("plr_kept\n")
    peer.on("GET", "/session", Answer(200, api_samples.session()))
    peer.on("GET", "/runs", Answer(200, api_samples.page()))
    assert palestra("login", peer.url, "--token-file", str(token))[0] == 0
    assert logins_path().stat().st_mode & 0o077 == 0
    monkeypatch.delenv("PALESTRA_SERVER")
    monkeypatch.delenv("PALESTRA_TOKEN")
    assert palestra("runs")[0] == 0
    assert peer.asked[-1].headers["authorization"] == "Bearer plr_kept"


def test_a_refused_login_keeps_nothing(
    peer: Peer, palestra: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    peer.on(
        "GET", "/session", Answer(401, problem(401, "unauthenticated", "This token is unknown."))
    )
    monkeypatch.setattr("sys.stdin", io.StringIO("plr_wrong\n"))
    assert palestra("login", peer.url) == (1, "", "palestra: This token is unknown.\n")
    assert not logins_path().exists()


def test_a_token_file_that_others_may_read_is_pointed_out(
    peer: Peer, palestra: Run, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("plr_x")
    (tmp_path / "token").chmod(0o644)
    peer.on("GET", "/runs", Answer(200, api_samples.page()))
    code, _, err = palestra("runs", "--token-file", str(tmp_path / "token"))
    assert (code, "chmod 600" in err) == (0, True)


@pytest.mark.parametrize("content", ["", "\n", "two words and \x00", "ü"])
def test_a_token_file_without_a_token_is_refused(
    palestra: Run, tmp_path: Path, content: str
) -> None:
    (tmp_path / "token").write_text(content)
    assert palestra("runs", "--token-file", str(tmp_path / "token"))[0] == 2


def test_the_embedded_palestra_of_this_directory_is_found(
    peer: Peer, palestra: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("PALESTRA_SERVER")
    monkeypatch.delenv("PALESTRA_TOKEN")
    assert palestra("runs")[0] == 2
    (tmp_path / ".palestra" / "tokens").mkdir(parents=True)
    (tmp_path / ".palestra" / "up.json").write_text(json.dumps({"url": peer.url}))
    (tmp_path / ".palestra" / "tokens" / "user").write_text("plr_embedded")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    peer.on("GET", "/runs", Answer(200, api_samples.page()))
    assert palestra("runs")[0] == 0
    assert peer.asked[-1].headers["authorization"] == "Bearer plr_embedded"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["submit"],
        ["runs", "--nope"],
        ["up", "--port", "99999"],
        ["up", "--port", "abc"],
        ["login", "nowhere"],
        ["db"],
    ],
)
def test_wrong_usage_is_exit_code_2_and_no_traceback(palestra: Run, arguments: list[str]) -> None:
    code, _, err = palestra(*arguments)
    assert code == 2
    assert "Traceback" not in err


def test_version_and_help(palestra: Run) -> None:
    assert palestra("--version") == (0, "palestra 0.1.0\n", "")
    code, out, _ = palestra("--help")
    assert code == 0
    for command in (
        "up",
        "server",
        "worker",
        "submit",
        "experiments",
        "runs",
        "watch",
        "logs",
        "pause",
        "resume",
        "cancel",
        "evaluate",
        "login",
        "db",
        "demo",
    ):
        assert f"\n  {command} " in out


def test_a_fault_of_ours_is_one_sentence(palestra: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palestra.cli.queries.connect", lambda *_: 1 / 0)
    code, _, err = palestra("runs")
    assert (code, err.startswith("palestra: this is a fault of Palestra: ZeroDivisionError")) == (
        1,
        True,
    )


def test_export(peer: Peer, palestra: Run) -> None:
    """Line 15.9: formats and the pool reach the server; what is no format is refused here."""
    done = api_samples.job(schedule="export", state="succeeded")
    peer.on(
        "POST", f"/runs/{RUN}/jobs", Answer(201, api_samples.job(schedule="export", state="queued"))
    )
    peer.on("GET", f"/jobs/{JOB}", Answer(200, done))
    assert palestra("export", RUN)[:2] == (0, f"queued  {JOB}\n")
    assert (peer.asked[0].body["evaluate"]["formats"], peer.asked[0].body["pool"]) == (None, None)
    asked = (
        "--format",
        "weights",
        "--format",
        "onnx",
        "--pool",
        "gym",
        "--snapshot",
        "best",
        "--wait",
    )
    assert palestra("export", RUN, *asked)[:2] == (0, f"exported  {JOB}\n")
    sent = peer.asked[1].body
    assert (sent["schedule"], sent["pool"], sent["evaluate"]["snapshot"]) == (
        "export",
        "gym",
        "best",
    )
    assert sent["evaluate"]["formats"] == ["weights", "onnx"]


@pytest.mark.parametrize(
    ("formats", "sentence"),
    [
        (("onxx",), "there is no format 'onxx'; did you mean onnx?"),
        (("onnx", "onnx"), "name each format once"),
    ],
)
def test_formats_that_are_none(palestra: Run, formats: tuple[str, ...], sentence: str) -> None:
    """Line 15.9."""
    code, _, err = palestra(
        "export", RUN, *(part for name in formats for part in ("--format", name))
    )
    assert (code, sentence in " ".join(err.split())) == (2, True)


def test_retry(peer: Peer, palestra: Run) -> None:
    """Line 15.8."""
    peer.on("POST", f"/runs/{RUN}:retry", Answer(201, api_samples.job(state="queued")))
    assert palestra("retry", RUN)[:2] == (0, f"queued  {JOB}\n")
    assert peer.asked[0].body == {"origin": "newest", "allow_code_change": False, "reason": ""}
    code, out, _ = palestra(
        "retry", RUN, "--from", "start", "--allow-code-change", "--reason", "why", "--json"
    )
    assert (code, json.loads(out)["id"]) == (0, JOB)
    assert peer.asked[1].body == {"origin": "start", "allow_code_change": True, "reason": "why"}
    assert palestra("retry", RUN, "--from", "middle")[0] == 2


def test_resume_with_other_code(peer: Peer, palestra: Run) -> None:
    """Line 15.8."""
    refusal = problem(409, "code_changed", "The experiment was made with tiny 1.0.")
    peer.on(
        "POST",
        f"/jobs/{JOB}:resume",
        Answer(409, refusal),
        Answer(200, api_samples.job(state="queued")),
    )
    code, _, err = palestra("resume", JOB)
    assert (code, "made with tiny 1.0" in err) == (1, True)
    assert palestra("resume", JOB, "--allow-code-change")[0] == 0
    assert peer.asked[1].body == {"reason": "", "allow_code_change": True}


def test_the_catalogue_lists_agents_and_environments_with_their_code(
    peer: Peer, palestra: Run
) -> None:
    """Line 10: what a pool's workers can make is listed."""
    offered = Catalogue.model_validate_json(json.dumps(walking())).model_dump(mode="json")
    peer.on("GET", "/catalogue", Answer(200, {"pool": "gpu", "known": True, "catalogue": offered}))
    code, out, _ = palestra("catalogue", "--pool", "gpu")
    assert (code, peer.asked[0].query["pool"]) == (0, "gpu")
    rows = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert "discrete 2" in rows["tiny/Walk-v0"]
    assert "tiny-envs 2.0 (digest 555555555555)" in rows["tiny/Walk-v0"]
    assert "digest" not in rows["CartPole-v1"]
    assert "tiny-agents 1.2.0 (digest 777777777777)" in out
    assert palestra("catalogue", "walk")[1].splitlines()[1].split()[0] == "tiny/Walk-v0"
    assert json.loads(palestra("catalogue", "--json")[1])["catalogue"]["imports"] == ["loose"]
    assert "nothing that the pool default offers has 'xyz'" in palestra("catalogue", "xyz")[1]
