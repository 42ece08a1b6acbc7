"""Records of evaluations, and the hook that calls an evaluator object of the caller."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workers.core.null_parts import NoRecorder
from workers.core.protocols import ClockView, EngineView
from workers.core.types import (
    EpisodeEnd,
    EvaluationResult,
    JsonObject,
    LearnReport,
    StateTree,
    StopReason,
)
from workers.entrypoints.functional_parts.evaluator import (
    ExternalAgentEvaluator,
    call_evaluation_hooks,
    eval_stats_of,
)
from workers.entrypoints.functional_parts.scores_file import BASIC_COLUMNS, SCORES_FILE, ScoresFile
from workers.hooks.evaluation_hooks import is_reached
from workers.recording.tensorboard import TensorBoardFile

History = list[JsonObject]
"""One dictionary per evaluation: statistics of the agent, then `eval_score` (mean return), `step`,
`training_episodes`, `elapsed` and `wall_time` (seconds of training, and since the epoch) and all
statistics of the evaluation.
"""


class EpisodeCount:
    """Counts training episodes as PFRL does.

    In serial training, an episode that is cut off by the end of training counts, too.

    Args:
        final_step: Env_step at which serial training ends; `None` for batch training.
    """

    def __init__(self, final_step: int | None) -> None:
        self._final_step = final_step
        self._ended_at = -1
        self._known = 0

    def on_tick(self, view: EngineView, reports: Sequence[LearnReport]) -> None:
        """Stores the env_step at which the last episode ended.

        Must be called before the engine's other hooks, which read the count.
        """
        del reports
        if view.clock.episodes != self._known:
            self._known, self._ended_at = view.clock.episodes, view.clock.env_steps

    def state_dict(self) -> StateTree:
        """Returns the number of ended episodes and the env_step at which the last one ended."""
        return {"known": self._known, "ended_at": self._ended_at}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the state that `state_dict` returned."""
        self._known, self._ended_at = int(state["known"]), int(state["ended_at"])

    def is_cut_off(self, clock: ClockView) -> bool:
        """Returns whether training ends at `clock` in the middle of an episode."""
        return (
            self._final_step is not None
            and clock.env_steps >= self._final_step
            and self._ended_at != clock.env_steps
        )

    def count_at(self, clock: ClockView) -> int:
        """Returns the number of training episodes at `clock`, one that is cut off included."""
        return clock.episodes + self.is_cut_off(clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationOutputs:
    """Files and hooks that receive the results of evaluations."""

    evaluator: ExternalAgentEvaluator
    scores: ScoresFile
    tensorboard: TensorBoardFile | None
    hooks: Sequence[Callable[..., Any]]

    @classmethod
    def open(
        cls,
        directory: Path,
        evaluator: ExternalAgentEvaluator,
        statistics: Iterable[tuple[str, object]],
        start: int,
        stack: ExitStack,
        *,
        writes_events: bool,
        hooks: Sequence[Callable[..., Any]] = (),
    ) -> "EvaluationOutputs":
        """Opens the files of evaluations in a directory; `stack` closes them.

        Rows of an earlier training with an env_step after `start` are removed.
        """
        columns = [*BASIC_COLUMNS, *(name for name, _ in statistics)]
        scores = ScoresFile(directory / SCORES_FILE, columns, keep_until=start)
        events = None
        if writes_events:
            events = TensorBoardFile(directory, start + 1 if start else None)
            stack.callback(events.close)
        return cls(evaluator=evaluator, scores=scores, tensorboard=events, hooks=hooks)

    @property
    def best(self) -> float | None:
        """Best mean return in `scores.txt`; `None` if it has no row."""
        return max(self.scores.column("mean"), default=None)


class EvaluationRecorder(NoRecorder):
    """A recorder that writes evaluations and then calls the evaluation hooks.

    The engine saves the best agent after the hooks were called.

    Args:
        agent_statistics: Returns the agent's statistics as pairs of name and value.
        episodes: Counter of training episodes.
        outputs: Files and hooks; `None` if only an evaluator object of the caller evaluates.
    """

    def __init__(
        self,
        agent_statistics: Callable[[], list[tuple[str, object]]],
        episodes: EpisodeCount,
        outputs: EvaluationOutputs | None,
    ) -> None:
        self.history: History = []
        self._agent_statistics = agent_statistics
        self._episodes = episodes
        self._outputs = outputs

    def record_evaluation(
        self, clock: ClockView, result: EvaluationResult, *, is_final: bool
    ) -> None:
        """Writes an evaluation to all outputs and the history, then calls the hooks."""
        del is_final
        outputs = self._outputs
        if outputs is None:
            return
        agent_stats, env_stats, eval_stats = (
            self._agent_statistics(),
            outputs.evaluator.statistics(),
            eval_stats_of(result),
        )
        agent, env = dict(agent_stats), dict(env_stats)
        basic = {
            "steps": clock.env_steps,
            "episodes": self._episodes.count_at(clock),
            "elapsed": clock.wall_seconds,
        }
        numbers = {name: eval_stats[name] for name in ("mean", "median", "stdev", "max", "min")}
        outputs.scores.append({**agent, **env, **basic, **numbers})
        if outputs.tensorboard is not None:
            outputs.tensorboard.write(clock.env_steps, agent, env, eval_stats)
        self.append_entry(clock, agent, result.mean, {**env, **eval_stats})
        call_evaluation_hooks(
            outputs.hooks,
            outputs.evaluator,
            step=clock.env_steps,
            eval_stats=eval_stats,
            agent_stats=agent_stats,
            env_stats=env_stats,
        )

    def append_entry(
        self,
        clock: ClockView,
        agent: Mapping[str, object],
        score: float,
        stats: Mapping[str, object],
    ) -> None:
        """Appends an entry to the history.

        Args:
            clock: Clock at the evaluation.
            agent: The agent's statistics.
            score: Mean return.
            stats: Statistics of the environment and of the evaluation.
        """
        own = {
            "eval_score": score,
            "step": clock.env_steps,
            "training_episodes": self._episodes.count_at(clock),
            "elapsed": clock.wall_seconds,
            "wall_time": time.time(),
        }
        self.history.append({**agent, **stats, **own})

    def state_dict(self) -> StateTree:
        """Returns the history, with values converted to numbers or text."""
        return {
            "history": [
                {key: _to_plain_value(value) for key, value in one.items()} for one in self.history
            ]
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the history."""
        self.history[:] = state["history"]


class CallerEvaluator:
    """A hook that calls an evaluator object of the caller.

    Args:
        evaluator: An object with `evaluate_if_necessary(t, episodes)`, which returns a score or
            `None`, and `max_score`.
        evaluations: Recorder to whose history the scores are added.
        episodes: Counter of training episodes.
        evaluates_during_episode: Whether the evaluator is called after each step; if false, it is
            called when an episode ends.
        agent_statistics: Returns the agent's statistics as pairs of name and value.
        successful_score: Training ends once the evaluator's `max_score` is at least this value.
    """

    def __init__(
        self,
        evaluator: Any,
        evaluations: EvaluationRecorder,
        episodes: EpisodeCount,
        *,
        evaluates_during_episode: bool,
        agent_statistics: Callable[[], list[tuple[str, object]]],
        successful_score: float | None,
    ) -> None:
        for name in ("evaluate_if_necessary", "max_score"):
            if not hasattr(evaluator, name):
                raise TypeError(
                    f"evaluator: a {type(evaluator).__name__} has no {name}; "
                    "it needs evaluate_if_necessary and max_score"
                )
        self._evaluator = evaluator
        self._evaluations = evaluations
        self._episodes = episodes
        self._during_episode = evaluates_during_episode
        self._agent_statistics = agent_statistics
        self._successful_score = successful_score

    def on_tick(self, view: EngineView, reports: Sequence[LearnReport]) -> None:
        """Calls the evaluator after a step, if `evaluates_during_episode` is set."""
        del reports
        if self._during_episode:
            self._call_evaluator(view)

    def on_episode(self, view: EngineView, end: EpisodeEnd) -> None:
        """Calls the evaluator after an episode, unless `evaluates_during_episode` is set."""
        del end
        if not self._during_episode:
            self._call_evaluator(view)

    def on_finish(self, view: EngineView, reason: StopReason) -> None:
        """Calls the evaluator if the end of training cut an episode off."""
        if (
            reason is StopReason.BUDGET
            and not self._during_episode
            and self._episodes.is_cut_off(view.clock)
        ):
            self._call_evaluator(view)

    def state_dict(self) -> StateTree:
        """Returns the evaluator's state; empty if the evaluator has no `state_dict`."""
        return (
            {"own": self._evaluator.state_dict()} if hasattr(self._evaluator, "state_dict") else {}
        )

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the evaluator's state, if the evaluator has `load_state_dict`."""
        if "own" in state and hasattr(self._evaluator, "load_state_dict"):
            self._evaluator.load_state_dict(state["own"])

    def _call_evaluator(self, view: EngineView) -> None:
        score = self._evaluator.evaluate_if_necessary(
            t=view.clock.env_steps, episodes=self._episodes.count_at(view.clock)
        )
        if score is not None:
            self._evaluations.append_entry(
                view.clock, dict(self._agent_statistics()), float(score), {}
            )
        if is_reached(self._successful_score, self._evaluator.max_score):
            view.request_stop(StopReason.SUCCESS_SCORE)


def _to_plain_value(value: Any) -> object:
    """Converts a value to one that a snapshot can hold: a number, text, boolean or `None`."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)
