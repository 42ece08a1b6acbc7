"""`palestra demo` as a user meets it: real processes, exit codes, and nothing left behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from palestra.cli.embedded.children import marked
from tests.e2e.histories import cartpole

pytestmark = [pytest.mark.processes, pytest.mark.timeout(240)]


def test_the_demo_trains_evaluates_and_stops(directory: Path) -> None:
    definition = directory / "quick.yaml"
    quick = cartpole(1_200, evaluation={"every_env_steps": 400, "episodes": 2}, stop={"success_score": 1})
    definition.write_text(json.dumps({"definition": quick}))
    command = [sys.executable, "-m", "palestra.cli", "demo", "--file", "quick.yaml", "--port", "0"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PALESTRA_")}
    for known, seeds in ((False, "0-1"), (True, "1")):
        done = subprocess.run(
            [*command, "--seeds", seeds], cwd=directory, env=kept, capture_output=True, text=True, check=False, timeout=180
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert ("was here before" in done.stdout) is known
        assert "Experiment  fault-test-" in done.stdout
        assert "/experiments/fault-test-" in done.stdout
        assert str(directory / ".palestra") in done.stdout
        assert done.stdout.count(" ok\n") == len(seeds.split("-"))
        assert marked(directory / ".palestra") == []


def test_a_demo_below_the_score_is_a_failure(directory: Path) -> None:
    hard = cartpole(600, evaluation={"every_env_steps": 400, "episodes": 2}, stop={"success_score": 499})
    (directory / "hard.yaml").write_text(json.dumps({"definition": hard}))
    command = [sys.executable, "-m", "palestra.cli", "demo", "--file", "hard.yaml", "--port", "0", "--seeds", "0"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PALESTRA_")}
    done = subprocess.run(command, cwd=directory, env=kept, capture_output=True, text=True, check=False, timeout=180)
    assert (done.returncode, "below the score" in done.stdout) == (1, True)
    assert marked(directory / ".palestra") == []
