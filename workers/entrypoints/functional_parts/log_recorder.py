"""Logs the progress of a training as lines of text."""

import logging
from collections import deque
from collections.abc import Callable, Sequence

from workers.core.null_parts import NoRecorder
from workers.core.protocols import ClockView
from workers.core.types import EpisodeEnd, EvaluationResult, LearnReport, StateTree

_NOTHING = float("nan")


class LogRecorder(NoRecorder):
    """A recorder that logs a line per episode, or at each multiple of an interval.

    Args:
        logger: Receives all lines, at level INFO.
        outdir: Output directory, printed in each line.
        statistics: Returns the agent's statistics; called for each line.
        interval: Env_steps between two lines; `None` writes no such lines.
        window: Number of newest episodes over which the return is averaged.
        logs_episodes: Whether to write a line per episode.
    """

    def __init__(
        self,
        logger: logging.Logger,
        outdir: str,
        statistics: Callable[[], object],
        *,
        interval: int | None = None,
        window: int = 100,
        logs_episodes: bool = False,
    ) -> None:
        if interval is not None and interval < 1:
            raise ValueError(f"log_interval must be at least 1 or None, not {interval}")
        self._logger = logger
        self._outdir = outdir
        self._statistics = statistics
        self._interval = interval
        self._per_episode = logs_episodes
        self._returns: deque[float] = deque(maxlen=window)
        self._next = interval or 0

    def begin(self, env_steps: int) -> None:
        """Sets the env_step at which training begins: the next line is due at a later multiple."""
        if self._interval:
            self._next = (env_steps // self._interval + 1) * self._interval

    def record_iteration(
        self,
        clock: ClockView,
        episodes: Sequence[tuple[int, EpisodeEnd]],
        reports: Sequence[LearnReport],
    ) -> None:
        """Writes the lines of ended episodes, and the line of a multiple that was crossed."""
        del reports
        for number, (step, end) in enumerate(episodes, clock.episodes - len(episodes)):
            self._returns.append(end.episode_return)
            if self._per_episode:
                self._logger.info(
                    "outdir:%s step:%s episode:%s R:%s length:%s",
                    self._outdir,
                    step,
                    number,
                    end.episode_return,
                    end[3],
                )
                self._logger.info("statistics:%s", self._statistics())
        if self._interval and clock.env_steps >= self._next:
            self.begin(clock.env_steps)
            self._write_interval(clock)

    def record_evaluation(
        self, clock: ClockView, result: EvaluationResult, *, is_final: bool
    ) -> None:
        """Writes a line per evaluation episode and one with the statistics of their returns."""
        del is_final
        for number, (value, length) in enumerate(zip(result.returns, result.lengths, strict=True)):
            self._logger.info("evaluation episode %s length:%s R:%s", number, length, value)
        self._logger.info(
            "evaluation at step %s mean:%s median:%s stdev:%s",
            clock.env_steps,
            result.mean,
            result.median,
            result.stdev,
        )

    def state_dict(self) -> StateTree:
        """Returns the episode returns in the window."""
        return {"returns": list(self._returns)}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the episode returns in the window."""
        self._returns.clear()
        self._returns.extend(float(one) for one in state["returns"])

    def _write_interval(self, clock: ClockView) -> None:
        last, mean = (
            (self._returns[-1], sum(self._returns) / len(self._returns))
            if self._returns
            else (_NOTHING, _NOTHING)
        )
        line = "outdir:%s step:%s episode:%s last_R:%s average_R:%s statistics:%s"
        self._logger.info(
            line, self._outdir, clock.env_steps, clock.episodes, last, mean, self._statistics()
        )
