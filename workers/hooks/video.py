"""The hook that writes videos of evaluation episodes."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from workers.core.protocols import ClockView, EngineView
from workers.core.types import EvaluationResult, StateTree

Choice = Literal["first", "best", "worst", "median"]
Film = Callable[[int, int, Path], object]
"""Replays an episode, given the evaluation's seed and the episode's number in it, and writes a
video to the path.
"""


@dataclass(frozen=True, slots=True)
class VideoEpisode:
    """The evaluation episode of a video."""

    env_step: int
    """env_step of the training at which the evaluation ran."""
    episode: int
    """Number of the episode in the evaluation, by start order from 0."""
    episode_return: float
    path: Path


class VideoHook:
    """Writes a video of one episode of every n-th evaluation, beginning with the first evaluation.

    Args:
        film: Replays an episode and writes its video.
        directory: Directory of the videos, which are named by env_step and episode; a resumed run
            overwrites videos of the same name.
        every: n, the number of evaluations from one video to the next.
        choice: Which episode of the evaluation: the first, or by its return.
        announce: Called after each video is written.
    """

    def __init__(
        self,
        film: Film,
        directory: Path,
        *,
        every: int = 1,
        choice: Choice = "first",
        announce: Callable[[ClockView, VideoEpisode], None] = lambda *_: None,
    ) -> None:
        self._film = film
        self._directory = directory
        self._every = every
        self._choice: Choice = choice
        self._announce = announce
        self._evaluations = 0

    def on_evaluation(self, view: EngineView, result: EvaluationResult) -> None:
        """Writes a video if one is due at this evaluation."""
        is_due = self._evaluations % self._every == 0
        self._evaluations += 1
        if not is_due:
            return
        episode, env_step = chosen_episode(result.returns, self._choice), view.clock.env_steps
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._directory / f"{env_step:012d}-episode-{episode}.mp4"
        self._film(result.seed, episode, path)
        self._announce(view.clock, VideoEpisode(env_step, episode, result.returns[episode], path))

    def state_dict(self) -> StateTree:
        """Returns the number of evaluations so far."""
        return {"evaluations": self._evaluations}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the number of evaluations so far."""
        self._evaluations = int(state["evaluations"])


def chosen_episode(returns: tuple[float, ...], choice: Choice) -> int:
    """Returns the index of the episode that `choice` selects.

    Among equal returns, the first episode is selected; `median` is the lower median. NaN counts as
    the worst return.
    """
    numbers = range(len(returns))

    def value(number: int) -> float:
        return -math.inf if math.isnan(returns[number]) else returns[number]

    if choice == "best":
        return max(numbers, key=value)
    if choice == "worst":
        return min(numbers, key=value)
    return 0 if choice == "first" else sorted(numbers, key=value)[(len(numbers) - 1) // 2]
