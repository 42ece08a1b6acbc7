"""Commands that show one run and download its files."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import api_samples
from tests.support.api_samples import JOB, RUN
from tests.support.commands import RunCommand
from tests.support.fake_http_server import Answer, FakeHttpServer

FAILURE = {
    "message": "ValueError: the robot \x1b[31mfell over\nand again",
    "exception": "ValueError",
    "traceback": "Traceback\n  boom",
}


def _make_artifact(name: str, content: bytes, number: int = 1, **changes: Any) -> dict[str, Any]:
    file = {"name": name, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    owner = {
        "run_id": RUN,
        "attempt_id": api_samples.make_id("att", 1),
        "snapshot_id": None,
        "created_at": api_samples.NOW,
    }
    return {
        "id": api_samples.make_id("art", number),
        "kind": "export",
        "stored": True,
        **owner,
        **file,
        **changes,
    }


def _make_snapshot(name: str, **changes: Any) -> dict[str, Any]:
    marks = {
        "best": False,
        "newest": False,
        "superseded": False,
        "score": 5.0,
        "resume_exact": True,
        "files": [],
        "size": 4,
    }
    at = {
        "env_step": 500,
        "update": 5,
        "episode": 7,
        "fence": 1,
        "reason": "periodic",
        "state": "verified",
        "created_at": api_samples.NOW,
    }
    return {
        "id": name,
        "run_id": RUN,
        "attempt_id": api_samples.make_id("att", 1),
        **marks,
        **at,
        **changes,
    }


def test_watch_prints_why_runs_failed(peer: FakeHttpServer, palestra: RunCommand) -> None:
    """Regression: `submit --watch` ended with exit code 1 and did not print why."""
    peer.set_answers("POST", "/experiments", Answer(201, api_samples.make_experiment()))
    failed = [
        api_samples.make_run(
            id=api_samples.make_id("run", seed),
            seed=seed,
            state="failed",
            cause="user_exception",
            failure=FAILURE,
        )
        for seed in (0, 1)
    ]
    other = api_samples.make_run(
        id=api_samples.make_id("run", 2),
        seed=2,
        state="failed",
        cause="diverged",
        failure={"message": "NaN"},
    )
    peer.set_answers(
        "GET",
        "/runs",
        Answer(
            200,
            api_samples.make_page(
                *failed, other, api_samples.make_run(seed=3, state="cancelled", cause="user")
            ),
        ),
    )
    code, out, _ = palestra("submit", "x.yaml", "--watch")
    assert code == 1
    text = " ".join(out.split())
    assert (
        "failed: seeds 0, 1 user_exception: ValueError: the robot \ufffd[31mfell over more with: "
        f"palestra show {failed[0]['id']}" in text
    )
    assert "failed: seed 2 diverged: NaN more with" in text
    assert "500 env_steps user_exception: ValueError: the robot" in text, (
        "and beside the run as soon as it failed"
    )
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("states", "expected"),
    [(("succeeded", "cancelled"), 3), (("cancelled", "failed"), 1), (("succeeded",), 0)],
)
def test_watch_exits_differently_for_failures_and_cancellations(
    peer: FakeHttpServer, palestra: RunCommand, states: tuple[str, ...], expected: int
) -> None:
    """Regression: the exit code was 1 in both cases."""
    runs = [
        api_samples.make_run(id=api_samples.make_id("run", seed), seed=seed, state=state)
        for seed, state in enumerate(states)
    ]
    peer.set_answers("GET", "/runs", Answer(200, api_samples.make_page(*runs)))
    assert palestra("watch", "exp")[0] == expected
    assert "3 cancelled" in palestra("--help")[1]


def test_lists_show_why_runs_and_jobs_failed(peer: FakeHttpServer, palestra: RunCommand) -> None:
    """Regression: `runs`, `jobs` and `experiments` never showed the cause."""
    why = {"state": "failed", "cause": "user_exception", "failure": FAILURE}
    peer.set_answers(
        "GET", "/runs", Answer(200, api_samples.make_page(api_samples.make_run(**why)))
    )
    peer.set_answers(
        "GET",
        "/jobs",
        Answer(
            200,
            api_samples.make_page(
                api_samples.make_job(**why), api_samples.make_job(state="failed", cause="no_result")
            ),
        ),
    )
    count = {"cause": "user_exception", "message": "x" * 500, "runs": 2, "run_id": RUN}
    peer.set_answers(
        "GET",
        "/experiments",
        Answer(
            200,
            api_samples.make_page(
                api_samples.make_experiment(runs={"failed": 2, "queued": 1}, failures=[count])
            ),
        ),
    )
    for command in ("runs", "jobs"):
        out = palestra(command)[1]
        assert "user_exception: ValueError: the robot \ufffd[31mfell over" in out
        assert "and again" not in out
    assert "no_result" in palestra("jobs")[1]
    out = palestra("experiments")[1]
    assert "2 of 3: user_exception: xxx" in out
    assert "x" * 100 not in out
    assert "…" in out


def test_waiting_for_a_cancelled_job_exits_with_3(
    peer: FakeHttpServer, palestra: RunCommand
) -> None:
    """For a failed job the exit code is 1."""
    peer.set_answers("POST", f"/runs/{RUN}/jobs", Answer(201, api_samples.make_job(state="queued")))
    peer.set_answers(
        "GET", f"/jobs/{JOB}", Answer(200, api_samples.make_job(state="cancelled", cause="user"))
    )
    assert palestra("evaluate", RUN, "--wait") == (3, "", f"palestra: {JOB} cancelled: user\n")


def test_show_prints_a_run_with_its_attempts_jobs_and_results(
    peer: FakeHttpServer, palestra: RunCommand
) -> None:
    """Regression: no command printed all of these."""
    attempt = {
        "id": api_samples.make_id("att", 1),
        "job_id": JOB,
        "number": 1,
        "worker_id": "w",
        "worker_name": "box-1",
        "slot": 0,
        "slots": [0],
        "state": "ended",
        "outcome": "failed",
        "cause": "user_exception",
        "failure": FAILURE,
        "fences": {RUN: 1},
        "resumed_from": {RUN: "snp_old"},
        "resume_quality": "exact",
        "compile": "compiled",
        "simulator": "palestra",
        "started_at": api_samples.NOW,
        "ended_at": None,
        "acked_seq": 3,
    }
    failed = api_samples.make_run_detail(
        state="failed",
        cause="user_exception",
        failure=FAILURE,
        attempts=[attempt],
        jobs=[api_samples.make_job()],
    )
    peer.set_answers("GET", f"/runs/{RUN}", Answer(200, failed))
    peer.set_answers(
        "GET",
        f"/runs/{RUN}/snapshots",
        Answer(
            200,
            api_samples.make_page(
                _make_snapshot("snp_a", newest=True), _make_snapshot("snp_b", best=True)
            ),
        ),
    )
    peer.set_answers(
        "GET",
        f"/runs/{RUN}/evaluations",
        Answer(200, api_samples.make_page(api_samples.make_evaluation(481.0, episodes=1))),
    )
    peer.set_answers(
        "GET",
        f"/runs/{RUN}/artifacts",
        Answer(200, api_samples.make_page(_make_artifact("policy.pt2", b"program"))),
    )
    code, out, _ = palestra("show", RUN)
    assert code == 0
    for words in (
        "ValueError: the robot",
        "    boom",
        "box-1",
        "snp_old",
        "snp_a",
        "best",
        "481.0",
        "policy.pt2",
        JOB,
        "500 env_steps",
        "updates     compiled",
        "simulator   palestra",
    ):
        assert words in out
    assert "\x1b" not in out
    _, out, _ = palestra("show", RUN, "--rows", "1")
    assert ("snp_b" in out, "snapshots (1 of 2)" in out) == (False, True)
    found = json.loads(palestra("show", RUN, "--json")[1])
    assert found["failure"]["traceback"] == FAILURE["traceback"]
    assert [
        len(found[part]) for part in ("attempts", "jobs", "snapshots", "evaluations", "artifacts")
    ] == [1, 1, 2, 1, 1]


def test_show_says_what_a_run_does_before_it_trains(
    peer: FakeHttpServer, palestra: RunCommand
) -> None:
    compiling = api_samples.make_run_detail(state="running", phase="compiling")
    peer.set_answers("GET", f"/runs/{RUN}", Answer(200, compiling))
    for part in ("snapshots", "evaluations", "artifacts"):
        peer.set_answers("GET", f"/runs/{RUN}/{part}", Answer(200, api_samples.make_page()))
    assert palestra("show", RUN)[1].startswith(f"{RUN}  running (compiling)\n")


def test_artifacts_lists_the_files_of_a_run(peer: FakeHttpServer, palestra: RunCommand) -> None:
    """Regression: no command listed them."""
    peer.set_answers(
        "GET",
        f"/runs/{RUN}/artifacts",
        Answer(200, api_samples.make_page(_make_artifact("policy.pt2", b"program", stored=False))),
    )
    code, out, _ = palestra("artifacts", RUN, "--kind", "export")
    assert (code, "policy.pt2" in out, "not yet" in out) == (0, True, True)
    assert peer.asked[0].query["kind"] == "export"
    assert json.loads(palestra("artifacts", RUN, "--json")[1])[0]["size"] == 7
    assert palestra("artifacts", RUN, "--kind", "nonsense")[0] == 2


def test_download_stores_files_in_a_directory_named_like_the_run(
    peer: FakeHttpServer, palestra: RunCommand, tmp_path: Path
) -> None:
    """The command downloads a snapshot, an export or one file."""
    best = {
        **_make_artifact("weights.bin", b"1234", 2),
        "artifact_id": api_samples.make_id("art", 2),
    }
    file = {name: best[name] for name in ("name", "size", "sha256", "artifact_id")}
    peer.set_answers(
        "GET",
        f"/runs/{RUN}/snapshots",
        Answer(
            200,
            api_samples.make_page(
                _make_snapshot("snp_a", newest=True),
                _make_snapshot("snp_b", best=True, files=[file]),
            ),
        ),
    )
    peer.set_answers(
        "GET",
        f"/runs/{RUN}/artifacts",
        Answer(200, api_samples.make_page(_make_artifact("policy.pt2", b"program"))),
    )
    peer.set_answers(
        "GET", f"/artifacts/{api_samples.make_id('art', 1)}/content", Answer(200, raw=b"program")
    )
    peer.set_answers(
        "GET",
        f"/artifacts/{api_samples.make_id('art', 1)}",
        Answer(200, _make_artifact("policy.pt2", b"program")),
    )
    peer.set_answers(
        "GET", f"/artifacts/{api_samples.make_id('art', 2)}/content", Answer(200, raw=b"1234")
    )
    assert palestra("download", RUN) == (0, f"{RUN}/snp_b\n", "")
    assert (tmp_path / RUN / "snp_b" / "weights.bin").read_bytes() == b"1234"
    assert (
        palestra("download", RUN, "--export", "program", "--output", "there")[1]
        == "there/policy.pt2\n"
    )
    code, out, _ = palestra(
        "download", RUN, "--artifact", api_samples.make_id("art", 1), "--output", "there", "--json"
    )
    assert (code, json.loads(out)) == (0, {"paths": [str(tmp_path / "there" / "policy.pt2")]})
    code, _, err = palestra("download", RUN, "--snapshot", "snp_c")
    assert (code, "snp_a, snp_b" in err) == (1, True)


@pytest.mark.parametrize(
    "options",
    [
        ("--export", "pickle"),
        ("--export", "onnx", "--snapshot", "best"),
        ("--artifact", "a", "--export", "onnx"),
    ],
)
def test_conflicting_options_of_download_are_refused(
    peer: FakeHttpServer, palestra: RunCommand, options: tuple[str, ...]
) -> None:
    assert palestra("download", RUN, *options)[0] == 2
    assert not peer.asked


@pytest.mark.parametrize("video", ["film.avi", "no/where/film.mp4"])
def test_an_unwritable_video_path_is_refused_before_any_request(
    peer: FakeHttpServer, palestra: RunCommand, video: str
) -> None:
    """`palestra play` checks the path before it sends a request to the server."""
    assert palestra("play", RUN, "--video", video)[0] == 2
    assert not peer.asked
