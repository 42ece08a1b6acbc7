"""`palestra demo` in real processes: its exit codes, and that it leaves no process behind."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from palestra.cli.embedded.child_processes import find_marked
from tests.e2e.run_history import make_cartpole_definition
from tests.support.process_stack import make_bare_environment

pytestmark = pytest.mark.processes


def _run_demo(
    directory: Path, definition: dict[str, Any], seeds: str
) -> subprocess.CompletedProcess[str]:
    (directory / "demo.yaml").write_text(json.dumps({"definition": definition}))
    command = [
        sys.executable,
        "-m",
        "palestra.cli",
        "demo",
        "--file",
        "demo.yaml",
        "--port",
        "0",
        "--seeds",
        seeds,
    ]
    done = subprocess.run(
        command,
        cwd=directory,
        env=make_bare_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert find_marked(directory / ".palestra") == []
    return done


def test_the_demo_trains_evaluates_and_stops(directory: Path) -> None:
    quick = make_cartpole_definition(
        1_200, evaluation={"every_env_steps": 400, "episodes": 2}, stop={"success_score": 1}
    )
    for known, seeds in ((False, "0-1"), (True, "1")):
        done = _run_demo(directory, quick, seeds)
        assert done.returncode == 0, done.stdout + done.stderr
        assert ("was here before" in done.stdout) is known
        assert "Experiment  fault-test-" in done.stdout
        assert "/experiments/fault-test-" in done.stdout
        assert str(directory / ".palestra") in done.stdout
        assert done.stdout.count(" ok\n") == len(seeds.split("-"))


@pytest.mark.slow
def test_a_demo_below_the_score_exits_with_a_failure(directory: Path) -> None:
    hard = make_cartpole_definition(
        600, evaluation={"every_env_steps": 400, "episodes": 2}, stop={"success_score": 499}
    )
    done = _run_demo(directory, hard, "0")
    assert (done.returncode, "below the score" in done.stdout) == (1, True)
