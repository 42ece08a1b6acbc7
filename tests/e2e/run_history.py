"""Definitions that train for a known time, and the history of a run.

The history is read from the worker's spool and from the server's answers.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from palestra.telemetry.spool import SpoolReader
from tests.support.process_stack import Stack

Episode = tuple[int, int, float]
"""Number of the episode, env_step at its end, episode return."""


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
    found: dict[str, Any] = series
    return found


def get_live_attempt(stack: Stack, run_id: str) -> dict[str, Any] | None:
    """Returns the attempt of a run that holds a lease now."""
    attempts: list[dict[str, Any]] = stack.get(f"runs/{run_id}")["attempts"]
    return next(
        (attempt for attempt in attempts if attempt["state"] in {"starting", "running"}), None
    )


def wait_for_success(stack: Stack, run_id: str) -> dict[str, Any]:
    """Waits until a run has succeeded; returns the run."""
    return stack.wait_for_run(run_id, lambda run: run["state"] == "succeeded", "the run succeeds")
