"""Hooks that act at multiples of a counter: updates (global_step) or episodes (global_episode).

Step hooks count the runs that made an update, episode hooks the runs that close an episode.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import structlog

from workers.core.types import StopReason
from workers.estimators.repeat_timer import RepeatTimer
from workers.estimators.summaries import SummaryWriter, episode_values, summary_values
from workers.supervised.run_session import RunContext, RunSession, RunValues, SessionRunHook

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Counter:
    """A counter of a session, and the runs that advance it."""

    noun: str
    default_every: int
    read: Callable[[RunSession], int]
    advances: Callable[[RunValues], bool]


_STEPS: Final = _Counter(
    "step", 100, lambda session: session.global_step, lambda values: values.has_learned
)
_EPISODES: Final = _Counter(
    "episode", 1, lambda session: session.global_episode, lambda values: values.episode is not None
)


class _CounterHook(SessionRunHook, ABC):
    """Acts each time that the counter passes a multiple of `every`, or every `secs` seconds."""

    _counter: ClassVar[_Counter]
    _has_default: ClassVar[bool] = True
    """Whether `every` has a default; otherwise exactly one of `every` and `secs` is required."""

    def __init__(self, every: int | None, secs: float | None) -> None:
        if every is None and secs is None and self._has_default:
            every = self._counter.default_every
        self._timer = RepeatTimer(every, secs)

    def after_create_session(self, session: RunSession, coord: object = None) -> None:
        """Starts the timer at the current value of the counter."""
        del coord
        self._timer.start(self._counter.read(session), session.now)

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        """Acts if this run advanced the counter and the timer is due."""
        session, counter = run_context.session, self._counter
        if counter.advances(run_values) and self._timer.restart_if_due(
            counter.read(session), session.now
        ):
            self._act(session, run_values)

    @abstractmethod
    def _act(self, session: RunSession, values: RunValues) -> None: ...


class _WriterHook(_CounterHook):
    """Writes rows with a summary writer, which it closes at the end of the training."""

    def __init__(self, every: int | None, secs: float | None, writer: SummaryWriter | None) -> None:
        super().__init__(every, secs)
        self._writer = writer

    def end(self, session: RunSession) -> None:
        """Closes the event files of the writer; a later row opens them again."""
        del session
        if self._writer is not None:
            self._writer.close()

    def _write(self, session: RunSession, row: Mapping[str, object]) -> None:
        self._writer = self._writer or SummaryWriter(session.model_dir)
        self._writer.write(session, row)


class _StopHook(SessionRunHook):
    """Requests a stop when the counter reaches `last`, or has advanced by `number`."""

    _counter: ClassVar[_Counter]

    def __init__(self, number: int | None, last: int | None) -> None:
        if (number is None) == (last is None):
            noun = self._counter.noun
            raise ValueError(
                f"{type(self).__name__}: set exactly one of num_{noun}s and last_{noun}"
            )
        self._number = number
        self._last = last

    def after_create_session(self, session: RunSession, coord: object = None) -> None:
        """Resolves a relative bound, and stops at once if the bound is reached already."""
        del coord
        if self._number is not None:
            self._last = self._counter.read(session) + self._number
        self._stop_if_reached(session)

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        """Requests a stop if the bound is reached."""
        del run_values
        self._stop_if_reached(run_context.session)

    def _stop_if_reached(self, session: RunSession) -> None:
        if self._last is not None and self._counter.read(session) >= self._last:
            session.request_stop(StopReason.REQUESTED if self._number is None else StopReason.PAUSE)


class _CheckpointHook(_CounterHook):
    _has_default = False

    def _act(self, session: RunSession, values: RunValues) -> None:
        del values
        session.request_checkpoint()


class _RateHook(_WriterHook):
    """Measures how fast the counter advances."""

    def __init__(self, every: int | None, secs: float | None, writer: SummaryWriter | None) -> None:
        super().__init__(every, secs, writer)
        self._since = (0, 0, 0.0)

    def after_create_session(self, session: RunSession, coord: object = None) -> None:
        """Starts the first measurement."""
        super().after_create_session(session, coord)
        self._since = self._reading(session)

    def _advance(self, session: RunSession) -> tuple[int, int, float]:
        """Returns counts, timesteps and seconds since the previous measurement."""
        before, self._since = self._since, self._reading(session)
        now = self._since
        return now[0] - before[0], now[1] - before[1], now[2] - before[2]

    def _reading(self, session: RunSession) -> tuple[int, int, float]:
        return self._counter.read(session), session.global_timestep, session.now()


class StepLoggingTensorHook(_CounterHook):
    """Logs the loss and the counters.

    Args:
        every_n_iter: Updates between two lines; by default 100.
        every_n_secs: Seconds between two lines, in place of updates.
    """

    _counter = _STEPS

    def __init__(self, every_n_iter: int | None = None, every_n_secs: float | None = None) -> None:
        super().__init__(every_n_iter, every_n_secs)

    def _act(self, session: RunSession, values: RunValues) -> None:
        _log.info("estimator.step", **summary_values(session, values))


class StopAtStepHook(_StopHook):
    """Ends the training at an update.

    Args:
        num_steps: Number of updates from the start of this training.
        last_step: Total updates of the model.

    Raises:
        ValueError: Unless exactly one is set.
    """

    _counter = _STEPS

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        super().__init__(num_steps, last_step)


class StepCheckpointSaverHook(_CheckpointHook):
    """Requests checkpoints at intervals of updates or seconds.

    Args:
        save_secs: Seconds between two checkpoints.
        save_steps: Updates between two checkpoints.

    Raises:
        ValueError: Unless exactly one is set.
    """

    _counter = _STEPS

    def __init__(self, save_secs: float | None = None, save_steps: int | None = None) -> None:
        super().__init__(save_steps, save_secs)


class StepCounterHook(_RateHook):
    """Measures updates per second.

    Args:
        every_n_steps: Updates between two measurements; by default 100.
        every_n_secs: Seconds between two measurements, in place of updates.
        writer: Receives `global_step/sec`; `None` writes into the session's directory.
    """

    _counter = _STEPS

    def __init__(
        self,
        every_n_steps: int | None = None,
        every_n_secs: float | None = None,
        writer: SummaryWriter | None = None,
    ) -> None:
        super().__init__(every_n_steps, every_n_secs, writer)
        self.steps_per_sec: float | None = None
        """The latest measurement."""

    def _act(self, session: RunSession, values: RunValues) -> None:
        del values
        steps, _, seconds = self._advance(session)
        if seconds > 0:
            self.steps_per_sec = steps / seconds
            self._write(session, {"global_step/sec": self.steps_per_sec})


class StepSummarySaverHook(_WriterHook):
    """Writes loss, learning rate, exploration rate and metrics.

    Args:
        save_steps: Updates between two rows; by default 100.
        save_secs: Seconds between two rows, in place of updates.
        writer: Receives the rows; `None` writes into the session's directory.
    """

    _counter = _STEPS

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        writer: SummaryWriter | None = None,
    ) -> None:
        super().__init__(save_steps, save_secs, writer)

    def _act(self, session: RunSession, values: RunValues) -> None:
        self._write(session, summary_values(session, values))


class EpisodeLoggingTensorHook(_CounterHook):
    """Logs the statistics of episodes.

    Args:
        every_n_episodes: Episodes between two lines; by default 1.
        every_n_secs: Seconds between two lines, in place of episodes.
    """

    _counter = _EPISODES

    def __init__(
        self, every_n_episodes: int | None = None, every_n_secs: float | None = None
    ) -> None:
        super().__init__(every_n_episodes, every_n_secs)

    def _act(self, session: RunSession, values: RunValues) -> None:
        _log.info("estimator.episode", **episode_values(session, values))


class StopAtEpisodeHook(_StopHook):
    """Ends the training at the end of an episode.

    Args:
        num_episodes: Number of episodes from the start of this training.
        last_episode: Total episodes of the model.

    Raises:
        ValueError: Unless exactly one is set.
    """

    _counter = _EPISODES

    def __init__(self, num_episodes: int | None = None, last_episode: int | None = None) -> None:
        super().__init__(num_episodes, last_episode)


class EpisodeCheckpointSaverHook(_CheckpointHook):
    """Requests checkpoints at the ends of episodes.

    Args:
        save_secs: Seconds between two checkpoints.
        save_episodes: Episodes between two checkpoints.

    Raises:
        ValueError: Unless exactly one is set.
    """

    _counter = _EPISODES

    def __init__(self, save_secs: float | None = None, save_episodes: int | None = None) -> None:
        super().__init__(save_episodes, save_secs)


class EpisodeCounterHook(_RateHook):
    """Measures episodes per second and timesteps per episode.

    Args:
        every_n_episodes: Episodes between two measurements; by default 1.
        every_n_secs: Seconds between two measurements, in place of episodes.
        writer: Receives `global_episode/sec` and `global_episode/steps`; `None` writes into the
            session's directory.
    """

    _counter = _EPISODES

    def __init__(
        self,
        every_n_episodes: int | None = None,
        every_n_secs: float | None = None,
        writer: SummaryWriter | None = None,
    ) -> None:
        super().__init__(every_n_episodes, every_n_secs, writer)
        self.episodes_per_sec: float | None = None
        """The latest measurement."""

    def _act(self, session: RunSession, values: RunValues) -> None:
        del values
        episodes, timesteps, seconds = self._advance(session)
        row = {"global_episode/steps": timesteps / episodes}
        if seconds > 0:
            self.episodes_per_sec = row["global_episode/sec"] = episodes / seconds
        self._write(session, row)


class EpisodeSummarySaverHook(_WriterHook):
    """Writes the statistics of episodes.

    Args:
        save_episodes: Episodes between two rows; by default 1.
        save_secs: Seconds between two rows, in place of episodes.
        writer: Receives the rows; `None` writes into the session's directory.
    """

    _counter = _EPISODES

    def __init__(
        self,
        save_episodes: int | None = None,
        save_secs: float | None = None,
        writer: SummaryWriter | None = None,
    ) -> None:
        super().__init__(save_episodes, save_secs, writer)

    def _act(self, session: RunSession, values: RunValues) -> None:
        self._write(session, episode_values(session, values))
