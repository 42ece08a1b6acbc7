"""The hook that films episodes of evaluations."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from workers.core.protocols import ClockView, EngineView
from workers.core.types import EvaluationResult, StateTree

Choice = Literal["first", "best", "worst", "median"]
Film = Callable[[int, int, Path], object]
"""Plays the episode of an evaluation's seed and an episode's number again, and writes it as a
video.
"""


@dataclass(frozen=True, slots=True)
class Scene:
    """What a video shows."""

    env_step: int
    """Of training, at the evaluation."""
    episode: int
    """Number in the evaluation, by start order."""
    episode_return: float
    path: Path


class VideoHook:
    """Films one episode of every n-th evaluation, the first one included.

    Args:
        film: Writes a video.
        directory: Where videos go, named by env_step and episode; a resumed run writes the same
            names again.
        every: Evaluations from one video to the next.
        choice: Which episode, by return.
        announce: Told of each video.
    """

    def __init__(
        self,
        film: Film,
        directory: Path,
        *,
        every: int = 1,
        choice: Choice = "first",
        announce: Callable[[ClockView, Scene], None] = lambda *_: None,
    ) -> None:
        self._film = film
        self._directory = directory
        self._every = every
        self._choice: Choice = choice
        self._announce = announce
        self._evaluations = 0

    def on_evaluation(self, view: EngineView, result: EvaluationResult) -> None:
        """Films an episode of every n-th evaluation."""
        due = self._evaluations % self._every == 0
        self._evaluations += 1
        if not due:
            return
        episode, env_step = chosen_episode(result.returns, self._choice), view.clock.env_steps
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._directory / f"{env_step:012d}-episode-{episode}.mp4"
        self._film(result.seed, episode, path)
        self._announce(view.clock, Scene(env_step, episode, result.returns[episode], path))

    def state_dict(self) -> StateTree:
        """Returns the count."""
        return {"evaluations": self._evaluations}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the count."""
        self._evaluations = int(state["evaluations"])


def chosen_episode(returns: tuple[float, ...], choice: Choice) -> int:
    """Returns the index of the first episode with the best, worst or lower median return.

    NaN is the worst return.
    """
    numbers = range(len(returns))

    def value(number: int) -> float:
        return -math.inf if math.isnan(returns[number]) else returns[number]

    if choice == "best":
        return max(numbers, key=value)
    if choice == "worst":
        return min(numbers, key=value)
    return 0 if choice == "first" else sorted(numbers, key=value)[(len(numbers) - 1) // 2]
