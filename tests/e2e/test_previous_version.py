"""The previous version's worker goes on with the present server.

The test holds for as long as workers of that version are supported: changes of answers, routes and
tables must leave it alone. `tests/support/previous_version.py` names the commit.
"""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks._chaos.curves import differences, history_of
from tests.e2e.run_history import cartpole, episodes_per_bucket, live_attempt, spooled_episodes
from tests.support.previous_version import write_previous_version
from tests.support.process_stack import REPOSITORY, Stack, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]

ENV_STEPS = 12_000
SETTINGS = {"PALESTRA_RENEW_SECONDS": "0.5", "PALESTRA_HEARTBEAT_SECONDS": "0.5"}


@pytest.fixture
def directory() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="plr-", dir="/tmp"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


def definition(number: int) -> dict[str, Any]:
    """Returns one of several experiments with the same training: a score that is never reached
    tells them apart.
    """
    return cartpole(ENV_STEPS, name=f"training {number}", stop={"success_score": 10_000 + number})


def submitted(stack: Stack, number: int) -> str:
    (run,) = stack.submit(definition(number), seeds=[1])
    return str(run["id"])


def trains(stack: Stack, run_id: str, steps: int = 500) -> dict[str, Any]:
    """Waits until a run has made `steps` env_steps more, and returns its live attempt."""
    before = stack.get(f"runs/{run_id}")["progress"]["env_step"]
    stack.wait_for_run(
        run_id, lambda run: run["progress"]["env_step"] >= before + steps, 60, "the run trains"
    )
    return wait_for(lambda: live_attempt(stack, run_id), 30, "the attempt is live")


def drain(stack: Stack, name: str) -> None:
    """Lets a worker claim nothing more, and waits until it heard so from the server."""
    (worker,) = [row for row in stack.get("workers")["items"] if row["name"] == name]
    stack.post(f"workers/{worker['id']}:drain")


def tree_of(stack: Stack, attempt: dict[str, Any]) -> set[str]:
    """Returns the source trees that supervisor and trainer of an attempt run from."""
    (supervisor,) = stack.module_processes("workers.supervisor", attempt["id"])
    (trainer, *_) = stack.module_processes("workers.trainer_process", attempt["id"])
    paths = [process.environ().get("PYTHONPATH", "") for process in (supervisor, trainer)]
    return {path.split(":")[0] for path in paths}


def pause_and_resume(stack: Stack, run_id: str) -> None:
    job_id = stack.get(f"runs/{run_id}")["job_id"]
    stack.post(f"jobs/{job_id}:pause", {})
    wait_for(lambda: stack.get(f"jobs/{job_id}")["state"] == "paused", 60, "the job is paused")
    stack.post(f"jobs/{job_id}:resume", {})


def is_whole(stack: Stack, run_id: str, worker: str, attempts: int) -> dict[str, Any]:
    """Waits for the end of a run, checks that its curve has no gap, and returns its history."""
    run = stack.wait_for_run(
        run_id, lambda run: run["state"] == "succeeded", 120, "the run succeeds"
    )
    assert [row["outcome"] for row in run["attempts"]].count("succeeded") == 1
    assert len(run["attempts"]) == attempts, run["attempts"]
    spooled = sorted(
        {
            row
            for attempt in run["attempts"]
            for row in spooled_episodes(stack.attempt_directory(attempt["id"], worker))
        }
    )
    assert [number for number, _, _ in spooled] == list(range(1, len(spooled) + 1))
    assert episodes_per_bucket(stack, run_id, len(spooled)) == [1] * len(spooled)
    assert run["progress"]["env_step"] == ENV_STEPS
    return history_of(stack, run_id)


def test_a_worker_of_the_previous_version_trains_on_while_the_server_is_upgraded(
    directory: Path,
) -> None:
    previous = write_previous_version(directory / "previous")
    stack = Stack(directory / "data", settings=SETTINGS)
    stack.trees = dict.fromkeys(("server", "worker", "second"), previous)
    with stack:
        # A live training of the previous version, in the middle of which its server is replaced.
        through = submitted(stack, 0)
        attempt = trains(stack, through)
        assert tree_of(stack, attempt) == {str(previous)}
        assert Path(f"/proc/{stack.processes['server'].pid}/cwd").resolve() == previous
        assert stack.stop("server") == 0
        del stack.trees["server"]
        stack.run("app.db", "upgrade")
        stack.start_server()
        assert Path(f"/proc/{stack.processes['server'].pid}/cwd").resolve() == REPOSITORY
        assert trains(stack, through)["id"] == attempt["id"], "the attempt goes on"
        drain(stack, "tester")

        # A worker of the previous version enrols with the present server, trains, pauses, resumes.
        stack.start_worker("second")
        afterwards = submitted(stack, 1)
        assert tree_of(stack, trains(stack, afterwards)) == {str(previous)}
        pause_and_resume(stack, afterwards)
        trains(stack, afterwards)
        drain(stack, "second")

        # The same training by the present worker.
        stack.start_worker("present")
        present = submitted(stack, 2)
        assert str(previous) not in tree_of(stack, trains(stack, present))

        expected = is_whole(stack, present, "present", 1)
        assert differences(expected, is_whole(stack, through, "worker", 1)) == []
        assert differences(expected, is_whole(stack, afterwards, "second", 2)) == []
        assert len(expected["curves"]) >= 3
