"""Hooks whose cadence is the episode (global_episode). They look at runs that close an episode."""

from abc import ABC, abstractmethod

import structlog

from workers.core.types import StopReason
from workers.estimators.repeat_timer import Repeated
from workers.estimators.summaries import SummaryWriter, episode_values
from workers.supervised.run_session import RunContext, RunSession, RunValues, SessionRunHook

_log = structlog.get_logger()


class _EpisodeHook(SessionRunHook, ABC):
    """Base of those that act at every so many episodes."""

    def __init__(self, every_n_episodes: int | None, secs: float | None = None) -> None:
        self._repeated = Repeated(every_n_episodes, secs)

    def after_create_session(self, session: RunSession, coord: object = None) -> None:
        """Counts from where the training stands."""
        del coord
        self._repeated.start(session.global_episode, session.now)

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        """Acts where an episode ended and it is due."""
        session = run_context.session
        if run_values.episode is not None and self._repeated.due(
            session.global_episode, session.now
        ):
            self._act(session, run_values)

    @abstractmethod
    def _act(self, session: RunSession, values: RunValues) -> None:
        """Does what the hook is for."""


class EpisodeLoggingTensorHook(_EpisodeHook):
    """Logs the statistics of an episode.

    Args:
        every_n_episodes: Episodes between two lines.
        every_n_secs: Seconds between two lines, in place of episodes.
    """

    def __init__(
        self, every_n_episodes: int | None = None, every_n_secs: float | None = None
    ) -> None:
        super().__init__(
            1 if every_n_episodes is None and every_n_secs is None else every_n_episodes,
            every_n_secs,
        )

    def _act(self, session: RunSession, values: RunValues) -> None:
        _log.info("estimator.episode", **episode_values(session, values))


class StopAtEpisodeHook(SessionRunHook):
    """Ends the training at the end of an episode.

    Args:
        num_episodes: After so many episodes from where it stands.
        last_episode: At this episode in the life of the model.

    Raises:
        ValueError: Unless exactly one is set.
    """

    def __init__(self, num_episodes: int | None = None, last_episode: int | None = None) -> None:
        if (num_episodes is None) == (last_episode is None):
            raise ValueError("StopAtEpisodeHook: set exactly one of num_episodes and last_episode")
        self._num_episodes = num_episodes
        self._last_episode = last_episode

    def after_create_session(self, session: RunSession, coord: object = None) -> None:
        """Counts from where the training stands."""
        del coord
        if self._num_episodes is not None:
            self._last_episode = session.global_episode + self._num_episodes
        self._stop_if_reached(session)

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        """Asks to stop."""
        del run_values
        self._stop_if_reached(run_context.session)

    def _stop_if_reached(self, session: RunSession) -> None:
        if self._last_episode is not None and session.global_episode >= self._last_episode:
            session.request_stop(
                StopReason.PAUSE if self._num_episodes is not None else StopReason.REQUESTED
            )


class EpisodeSummarySaverHook(_EpisodeHook):
    """Writes the statistics of episodes.

    Args:
        save_episodes: Episodes between two rows.
        save_secs: Seconds between two rows, in place of episodes.
        writer: Where they are written; `None` for the session's directory.
    """

    def __init__(
        self,
        save_episodes: int | None = None,
        save_secs: float | None = None,
        writer: SummaryWriter | None = None,
    ) -> None:
        super().__init__(
            1 if save_episodes is None and save_secs is None else save_episodes, save_secs
        )
        self._writer = writer

    def _act(self, session: RunSession, values: RunValues) -> None:
        self._writer = self._writer or SummaryWriter(session.model_dir)
        self._writer.write(session, episode_values(session, values))


class EpisodeCheckpointSaverHook(_EpisodeHook):
    """Asks for checkpoints.

    Args:
        save_secs: Seconds between two checkpoints.
        save_episodes: Episodes between two checkpoints.

    Raises:
        ValueError: Unless exactly one is set.
    """

    def __init__(self, save_secs: float | None = None, save_episodes: int | None = None) -> None:
        super().__init__(save_episodes, save_secs)

    def _act(self, session: RunSession, values: RunValues) -> None:
        del values
        session.request_checkpoint()


class EpisodeCounterHook(_EpisodeHook):
    """Measures episodes per second and updates per episode.

    Args:
        every_n_episodes: Episodes between two measurements.
        every_n_secs: Seconds between two measurements, in place of episodes.
        writer: Where they are written as `global_episode/sec` and `global_episode/steps`; `None`
            for the session's directory.
    """

    def __init__(
        self,
        every_n_episodes: int | None = None,
        every_n_secs: float | None = None,
        writer: SummaryWriter | None = None,
    ) -> None:
        super().__init__(
            1 if every_n_episodes is None and every_n_secs is None else every_n_episodes,
            every_n_secs,
        )
        self._writer = writer
        self._since = (0, 0, 0.0)
        self.episodes_per_sec: float | None = None
        """The last measurement."""

    def after_create_session(self, session: RunSession, coord: object = None) -> None:
        """Measures from where the training stands."""
        super().after_create_session(session, coord)
        self._since = (session.global_episode, session.global_timestep, session.now())

    def _act(self, session: RunSession, values: RunValues) -> None:
        del values
        episodes, timesteps, since = self._since
        self._since = (session.global_episode, session.global_timestep, session.now())
        made, seconds = session.global_episode - episodes, session.now() - since
        measured = {"global_episode/steps": (session.global_timestep - timesteps) / made}
        if seconds > 0:
            self.episodes_per_sec = measured["global_episode/sec"] = made / seconds
        self._writer = self._writer or SummaryWriter(session.model_dir)
        self._writer.write(session, measured)
