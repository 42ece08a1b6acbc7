"""Commands that show a run and fetch its results, on real processes."""

import json
from functools import partial
from pathlib import Path

import av
import pytest

from tests.e2e.run_history import make_cartpole_definition, wait_for_success
from tests.support.process_stack import Stack

pytestmark = pytest.mark.processes


def test_a_run_is_shown_fetched_and_played(stack: Stack, tmp_path: Path) -> None:
    palestra = partial(stack.run_palestra, directory=tmp_path)
    (run,) = stack.submit(
        make_cartpole_definition(600, name="results", export={"formats": ["weights"]})
    )
    wait_for_success(stack, run["id"])
    shown = json.loads(palestra("show", run["id"], "--json"))
    assert (shown["state"], len(shown["attempts"])) == ("succeeded", 1)
    best = next(snapshot for snapshot in shown["snapshots"] if snapshot["best"])

    assert palestra("download", run["id"]) == f"{run['id']}/{best['id']}\n"
    sizes = {
        str(path.relative_to(tmp_path / run["id"] / best["id"])): path.stat().st_size
        for path in (tmp_path / run["id"]).rglob("*.*")
    }
    assert sizes == {file["name"]: file["size"] for file in best["files"]}
    palestra("download", run["id"], "--export", "weights", "--output", "export")
    assert {path.name for path in (tmp_path / "export").iterdir()} == {
        "weights.safetensors",
        "policy.json",
    }

    played = palestra("play", run["id"], "--episodes", "2", "--video", "film.mp4", "--json")
    answer = json.loads(played)
    assert (answer["snapshot_id"], [episode["episode"] for episode in answer["episodes"]]) == (
        best["id"],
        [1, 2],
    )
    with av.open(str(tmp_path / "film.mp4")) as film:
        assert sum(1 for _ in film.decode(video=0)) == sum(
            episode["length"] + 1 for episode in answer["episodes"]
        )

    log = palestra("logs", run["id"]).splitlines()
    assert " begins on " in log[0]
    assert any(
        line.startswith("train: dqn on CartPole-v1, seed 0, attempt 1 on cpu") for line in log
    )
    assert any(line.startswith("evaluation at env_step 600: mean ") for line in log)
    assert log[-1].startswith("succeeded (budget) at env_step 600, ")


def test_the_cause_of_a_failure_is_in_every_view(stack: Stack, tmp_path: Path) -> None:
    palestra = partial(stack.run_palestra, directory=tmp_path)
    broken = make_cartpole_definition(
        600, name="broken", env={"id": "CartPole-v1", "kwargs": {"no_such_option": 1}}
    )
    (tmp_path / "broken.json").write_text(
        json.dumps({"definition": broken, "options": {"seeds": [0, 1]}})
    )
    arguments = ("submit", "broken.json", "--watch", "--no-provenance")
    watched = stack.call_palestra(*arguments, directory=tmp_path)
    assert watched.exit_code == 1
    assert "failed: seeds " in watched.output
    assert "no_such_option" in watched.output.partition("failed: seeds ")[2]
    (experiment,) = stack.get("experiments")["items"]
    (reason,) = experiment["failures"]
    assert (reason["runs"], reason["cause"]) == (2, "user_exception")
    assert "no_such_option" in reason["message"]
    for command in (
        ("runs", experiment["id"]),
        ("jobs", experiment["id"]),
        ("experiments",),
        ("show", reason["run_id"]),
    ):
        assert "user_exception" in palestra(*command), command
    log = palestra("logs", reason["run_id"])
    assert "Traceback (most recent call last):" in log
    assert log.splitlines()[-1].count("no_such_option")
