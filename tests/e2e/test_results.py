"""Commands that show a run and fetch its results, on real processes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import av
import pytest

from tests.e2e.run_history import make_cartpole_definition
from tests.support.process_stack import REPOSITORY, Stack, make_bare_environment

pytestmark = [pytest.mark.processes, pytest.mark.timeout(600)]

FINAL = {"succeeded", "failed", "cancelled"}


def run_palestra(
    stack: Stack, directory: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Runs the `palestra` command in a directory."""
    environment = {
        **make_bare_environment(),
        "PALESTRA_SERVER": stack.url,
        "PALESTRA_TOKEN": stack.tokens["user"],
        "PYTHONPATH": str(REPOSITORY),
    }
    command = [sys.executable, "-m", "palestra.cli", *arguments]
    return subprocess.run(
        command,
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_run_is_shown_fetched_and_played(shared_stack: Stack, tmp_path: Path) -> None:
    (run,) = shared_stack.submit(
        make_cartpole_definition(600, name="results", export={"formats": ["weights"]})
    )
    shared_stack.wait_for_run(run["id"], lambda run: run["state"] in FINAL, "the run ends")
    shown: dict[str, Any] = json.loads(
        run_palestra(shared_stack, tmp_path, "show", run["id"], "--json").stdout
    )
    assert (shown["state"], len(shown["attempts"])) == ("succeeded", 1)
    best = next(one for one in shown["snapshots"] if one["best"])

    fetched = run_palestra(shared_stack, tmp_path, "download", run["id"])
    assert (fetched.returncode, fetched.stdout) == (0, f"{run['id']}/{best['id']}\n"), (
        fetched.stderr
    )
    sizes = {
        str(path.relative_to(tmp_path / run["id"] / best["id"])): path.stat().st_size
        for path in (tmp_path / run["id"]).rglob("*.*")
    }
    assert sizes == {file["name"]: file["size"] for file in best["files"]}
    fetched = run_palestra(
        shared_stack, tmp_path, "download", run["id"], "--export", "weights", "--output", "export"
    )
    assert {path.name for path in (tmp_path / "export").iterdir()} == {
        "weights.safetensors",
        "policy.json",
    }, fetched.stderr

    played = run_palestra(
        shared_stack,
        tmp_path,
        "play",
        run["id"],
        "--episodes",
        "2",
        "--video",
        "film.mp4",
        "--json",
    )
    assert played.returncode == 0, played.stderr
    answer = json.loads(played.stdout)
    assert (answer["snapshot_id"], [one["episode"] for one in answer["episodes"]]) == (
        best["id"],
        [1, 2],
    )
    with av.open(str(tmp_path / "film.mp4")) as film:
        assert sum(1 for _ in film.decode(video=0)) == sum(
            one["length"] + 1 for one in answer["episodes"]
        )

    log = run_palestra(shared_stack, tmp_path, "logs", run["id"]).stdout.splitlines()
    assert " begins on " in log[0]
    assert any(
        line.startswith("train: dqn on CartPole-v1, seed 0, attempt 1 on cpu") for line in log
    )
    assert any(line.startswith("evaluation at env_step 600: mean ") for line in log)
    assert log[-1].startswith("succeeded (budget) at env_step 600, ")


def test_the_cause_of_a_failure_is_in_every_view(shared_stack: Stack, tmp_path: Path) -> None:
    broken = make_cartpole_definition(
        600, name="broken", env={"id": "CartPole-v1", "kwargs": {"no_such_option": 1}}
    )
    (tmp_path / "broken.json").write_text(
        json.dumps({"definition": broken, "options": {"seeds": [0, 1]}})
    )
    watched = run_palestra(
        shared_stack, tmp_path, "submit", "broken.json", "--watch", "--no-provenance"
    )
    assert watched.returncode == 1
    assert "failed: seeds " in watched.stdout
    assert "no_such_option" in watched.stdout.partition("failed: seeds ")[2]
    experiment = next(
        one for one in shared_stack.get("experiments")["items"] if one["name"] == "broken"
    )
    (reason,) = experiment["failures"]
    assert (reason["runs"], reason["cause"]) == (2, "user_exception")
    assert "no_such_option" in reason["message"]
    for command in (
        ("runs", experiment["id"]),
        ("jobs", experiment["id"]),
        ("experiments",),
        ("show", reason["run_id"]),
    ):
        assert "user_exception" in run_palestra(shared_stack, tmp_path, *command).stdout, command
    log = run_palestra(shared_stack, tmp_path, "logs", reason["run_id"]).stdout
    assert "Traceback (most recent call last):" in log
    assert log.splitlines()[-1].count("no_such_option")
