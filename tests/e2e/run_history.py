"""Definitions that train for a known time, and the history of a run.

The history is read from the worker's spool and from the server's answers.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psutil

from palestra.telemetry.spool import SpoolReader
from tests.support.process_stack import Stack
from tests.support.waiting import wait_for

SLOW_POLE: Final = "slow_pole:SlowPole-v0"
"""An environment that the worker of the shared stack may import."""
Episode = tuple[int, int, float]
"""Number of the episode, env_step at its end, episode return."""


def make_slow_definition(stack: Stack, env_steps: int, **changes: Any) -> dict[str, Any]:
    """Returns a definition that trains at most 50 env_steps a second until `release_brake`.

    It learns from its 50th env_step on.
    """
    brake = stack.directory / "brake"
    brake.touch()
    definition = make_cartpole_definition(env_steps, **changes)
    definition["env"] = {"id": SLOW_POLE, "kwargs": {"brake": str(brake)}}
    definition["agent"] |= {"learning_starts": 50}
    return definition


def release_brake(stack: Stack) -> None:
    """Lets the trainings of `make_slow_definition` go on at full speed."""
    (stack.directory / "brake").unlink()


def make_cartpole_definition(env_steps: int, **changes: Any) -> dict[str, Any]:
    """Returns a definition that trains for well over a second per 3,000 env_steps and never solves
    its task.
    """
    return {
        "kind": "rl",
        "name": "fault test",
        "env": {"id": "CartPole-v1"},
        "agent": {
            "name": "dqn",
            "learning_starts": 200,
            "train_every": 4,
            "hidden_sizes": [32, 32],
        },
        "loop": {"env_steps": env_steps, "epoch_env_steps": 500},
        "evaluation": {"every_env_steps": 5_000, "episodes": 2},
        "snapshot": {"every_env_steps": 2_000},
        **changes,
    }


def read_spooled_records(directory: Path) -> Iterator[dict[str, Any]]:
    """Yields the records of a spool in order."""
    with SpoolReader(directory / "spool") as reader:
        while (batch := reader.read()).payloads:
            yield from (json.loads(payload) for payload in batch.payloads)


def read_spooled_episodes(directory: Path) -> list[Episode]:
    """Returns the training episodes that an attempt spooled."""
    return [
        row
        for record in read_spooled_records(directory)
        if record["type"] == "episodes"
        for row in zip(record["episode"], record["env_step"], record["episode_return"], strict=True)
    ]


def count_points_per_episode(
    stack: Stack, run_id: str, episodes: int, *, superseded: bool = False
) -> list[int]:
    """Returns the number of points that the server has for each of the episodes 1 to `episodes`.

    `episodes` is at most 1,500, the number of buckets of a query.
    """
    counts: list[int] = _query_episode_series(stack, run_id, episodes, superseded=superseded)["n"]
    return counts


def read_episode_returns(stack: Stack, run_id: str, episodes: int) -> list[float]:
    """Returns the returns of episodes 1 to `episodes` (at most 1,500) without superseded ones."""
    returns: list[float] = _query_episode_series(stack, run_id, episodes, superseded=False)["mean"]
    return returns


def _query_episode_series(
    stack: Stack, run_id: str, episodes: int, *, superseded: bool
) -> dict[str, Any]:
    assert 2 <= episodes <= 1_500
    answer = stack.post(
        "series:query",
        {
            "select": [{"run_id": run_id, "series": "episode/return"}],
            "x": "episode",
            "start": 1,
            "end": episodes,
            "buckets": episodes,
            "include_superseded": superseded,
        },
    )
    (series,) = answer["series"]
    return dict(series)


def get_live_attempt(stack: Stack, run_id: str) -> dict[str, Any] | None:
    """Returns the attempt of a run that holds a lease now."""
    attempts: list[dict[str, Any]] = stack.get(f"runs/{run_id}")["attempts"]
    return next(
        (attempt for attempt in attempts if attempt["state"] in {"starting", "running"}), None
    )


def find_trainer(stack: Stack, attempt_id: str) -> psutil.Process:
    """Waits until the trainer of an attempt has started; returns its process."""

    def find() -> psutil.Process | None:
        return next(iter(stack.list_module_processes("workers.trainer_process", attempt_id)), None)

    return wait_for(find, "the trainer's process")


def suspend(process: psutil.Process) -> None:
    """Stops a process with SIGSTOP; a signal that is sent after this call stays pending."""
    process.suspend()
    wait_for(lambda: process.status() == psutil.STATUS_STOPPED, "the process is stopped")


@contextmanager
def suspended(process: psutil.Process) -> Iterator[None]:
    """Keeps a process stopped while the block runs."""
    suspend(process)
    try:
        yield
    finally:
        process.resume()


def wait_for_spooled_episodes(stack: Stack, attempt_id: str, worker: str = "worker") -> None:
    """Waits until an attempt has spooled more episodes, whether or not the server has them."""
    directory = stack.attempt_directory(attempt_id, worker)
    before = len(read_spooled_episodes(directory))
    wait_for(lambda: len(read_spooled_episodes(directory)) > before + 3, "the trainer goes on")


def wait_for_steps(stack: Stack, run_id: str, more: int) -> dict[str, Any]:
    """Waits until a run has done `more` further env_steps; returns its live attempt."""
    before = stack.get(f"runs/{run_id}")["progress"]["env_step"]
    stack.wait_for_run(
        run_id, lambda run: run["progress"]["env_step"] >= before + more, "the run trains"
    )
    return wait_for(lambda: get_live_attempt(stack, run_id), "the attempt is live")


def wait_for_success(stack: Stack, run_id: str) -> dict[str, Any]:
    """Waits until a run has succeeded; returns the run."""
    return stack.wait_for_run(run_id, lambda run: run["state"] == "succeeded", "the run succeeds")
