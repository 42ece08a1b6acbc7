"""Commands that queue jobs on a run, against a real HTTP server."""

import json

import pytest

from tests.support import api_samples
from tests.support.api_samples import JOB, RUN
from tests.support.commands import RunCommand
from tests.support.fake_http_server import Answer, FakeHttpServer


def test_evaluate_queues_a_job_and_prints_its_result(
    peer: FakeHttpServer, palestra: RunCommand
) -> None:
    peer.set_answers("POST", f"/runs/{RUN}/jobs", Answer(201, api_samples.make_job(state="queued")))
    peer.set_answers("GET", f"/jobs/{JOB}", Answer(200, api_samples.make_job(state="succeeded")))
    peer.set_answers(
        "GET",
        f"/runs/{RUN}/evaluations",
        Answer(200, api_samples.make_page(api_samples.make_evaluation(477.0))),
    )
    assert JOB in palestra("evaluate", RUN)[1]
    code, out, _ = palestra("evaluate", RUN, "--wait", "--json", "--episodes", "5", "--seed", "3")
    assert (code, json.loads(out)["mean"]) == (0, 477.0)
    assert "477.0" in palestra("evaluate", RUN, "--wait")[1]


def test_evaluate_sends_the_policy_and_prints_both_results(
    peer: FakeHttpServer, palestra: RunCommand
) -> None:
    peer.set_answers("POST", f"/runs/{RUN}/jobs", Answer(201, api_samples.make_job(state="queued")))
    peer.set_answers("GET", f"/jobs/{JOB}", Answer(200, api_samples.make_job(state="succeeded")))
    made = [
        api_samples.make_evaluation(mean, source=source)
        for mean, source in ((117.0, "stochastic"), (456.0, "evaluation"))
    ]
    peer.set_answers("GET", f"/runs/{RUN}/evaluations", Answer(200, api_samples.make_page(*made)))
    code, out, _ = palestra("evaluate", RUN, "--policy", "both", "--wait", "--json")
    assert (code, [row["mean"] for row in json.loads(out)]) == (0, [456.0, 117.0])
    assert peer.asked[0].body["evaluate"]["policy"] == "both"
    lines = palestra("evaluate", RUN, "--policy", "both", "--wait")[1].splitlines()
    assert [line.split()[-1] for line in lines] == ["source", "evaluation", "stochastic"]


def test_evaluate_can_follow_a_training(peer: FakeHttpServer, palestra: RunCommand) -> None:
    peer.set_answers(
        "POST",
        f"/runs/{RUN}/jobs",
        Answer(201, api_samples.make_job(state="queued", schedule="continuous_eval")),
    )
    peer.set_answers("GET", f"/jobs/{JOB}", Answer(200, api_samples.make_job(state="succeeded")))
    made = [
        api_samples.make_evaluation(mean, env_step=step) for step, mean in ((900, 9.0), (300, 3.0))
    ]
    peer.set_answers("GET", f"/runs/{RUN}/evaluations", Answer(200, api_samples.make_page(*made)))
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
        ("--follow", "--on-train-data", "--policy", "both"),
    ],
)
def test_conflicting_options_of_evaluate_are_refused(
    peer: FakeHttpServer, palestra: RunCommand, options: tuple[str, ...]
) -> None:
    assert palestra("evaluate", RUN, *options)[0] == 2
    assert not peer.asked


def test_test_queues_a_job_and_waits_for_it(peer: FakeHttpServer, palestra: RunCommand) -> None:
    peer.set_answers(
        "POST",
        f"/runs/{RUN}/jobs",
        Answer(201, api_samples.make_job(state="queued", schedule="test")),
    )
    peer.set_answers("GET", f"/jobs/{JOB}", Answer(200, api_samples.make_job(state="succeeded")))
    peer.set_answers(
        "GET",
        f"/runs/{RUN}/evaluations",
        Answer(200, api_samples.make_page(api_samples.make_evaluation(12.0, source="test"))),
    )
    assert "12.0" in palestra("test", RUN, "--wait")[1]
    assert peer.asked[0].body["schedule"] == "test"


def test_a_failed_evaluation_exits_with_1(peer: FakeHttpServer, palestra: RunCommand) -> None:
    peer.set_answers("POST", f"/runs/{RUN}/jobs", Answer(201, api_samples.make_job(state="queued")))
    failed = api_samples.make_job(state="failed", failure={"message": "The snapshot is gone."})
    peer.set_answers("GET", f"/jobs/{JOB}", Answer(200, failed))
    code, _, err = palestra("evaluate", RUN, "--wait")
    assert (code, "The snapshot is gone." in err) == (1, True)


def test_export_sends_formats_and_pool(peer: FakeHttpServer, palestra: RunCommand) -> None:
    """An unknown format is refused before a request is sent."""
    done = api_samples.make_job(schedule="export", state="succeeded")
    peer.set_answers(
        "POST",
        f"/runs/{RUN}/jobs",
        Answer(201, api_samples.make_job(schedule="export", state="queued")),
    )
    peer.set_answers("GET", f"/jobs/{JOB}", Answer(200, done))
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
def test_unknown_export_formats_are_refused(
    palestra: RunCommand, formats: tuple[str, ...], sentence: str
) -> None:
    """The command refuses them before it sends a request."""
    code, _, err = palestra(
        "export", RUN, *(part for name in formats for part in ("--format", name))
    )
    assert (code, sentence in " ".join(err.split())) == (2, True)
