"""The training of an agent, which is run one episode at a time."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from workers.core.rng import preserve_global_state, seed_global
from workers.core.types import LearnSchedule, StateTree, StopReason
from workers.engine.clock import Clock
from workers.engine.engine import Engine
from workers.engine.parts import Cadence, Parts
from workers.estimators.agent_learner import AgentLearner, EpisodeOptions
from workers.estimators.environments import vector_of
from workers.estimators.model_owner import ModelOwner
from workers.estimators.training_services import ModelBudget
from workers.rl.collect.vector_collector import VectorCollector
from workers.rl.envs.env_types import Env
from workers.supervised.learner import SessionHook
from workers.supervised.run_session import EpisodeRecord, RunSession


class AgentSession:
    """A training of one agent in one environment.

    A context manager that saves the last checkpoint on exit.

    Args:
        env: The environment; not closed.
        session: Session with hooks and counters.
        make_learner: Makes the learner for a learning schedule.
        bound: Total updates and episodes at which the training ends.
        owner: The agent.
    """

    def __init__(
        self,
        env: Env,
        session: RunSession,
        make_learner: Callable[[LearnSchedule], AgentLearner],
        bound: ModelBudget,
        owner: ModelOwner,
    ) -> None:
        self.env = env
        self.session = session
        self.has_ended = False
        """Whether the training has ended."""
        self._learner = make_learner(LearnSchedule(every_env_steps=1, updates=1))
        self.default_options = self._learner.options
        """The options that `Agent.train` passes to `Agent.run_episode`."""
        self._bound = bound
        self._owner = owner
        self._engine: Engine | None = None
        self._ticks: Iterator[Clock] | None = None
        self._open = ExitStack()

    @property
    def reason(self) -> StopReason:
        """Why the training ended."""
        return StopReason.REQUESTED if self._engine is None else self._engine.result.reason

    def run_episode(self, options: EpisodeOptions, schedule: LearnSchedule) -> EpisodeRecord | None:
        """Runs the engine to the end of one episode; see `Agent.run_episode`."""
        ticks = self._begin(schedule)
        self._learner.options = options
        self._learner.take_record()
        for _ in ticks:
            if (record := self._learner.take_record()) is not None:
                return record
        self.has_ended = True
        return self._learner.take_record()

    def __enter__(self) -> Self:
        self._open.enter_context(preserve_global_state())
        seed_global(self._owner.config.seed)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self._finish()
            elif (
                self._engine is not None
                and isinstance(error, Exception | KeyboardInterrupt)
                and not self._has_failed()
            ):
                self._engine.save_after(error)
        finally:
            self._open.close()

    def _finish(self) -> None:
        """Stops the engine, if the context was left before the training ended."""
        if self._engine is None or self._ticks is None or self.has_ended:
            return
        self._engine.request_stop(StopReason.REQUESTED)
        for _ in self._ticks:
            pass
        self.has_ended = True

    def _has_failed(self) -> bool:
        """Returns whether the engine's own loop raised, in which case it has already saved."""
        return getattr(self._ticks, "gi_frame", None) is None

    def _begin(self, schedule: LearnSchedule) -> Iterator[Clock]:
        """Returns the engine's loop; the first call builds and restores the engine."""
        if self._engine is None or self._ticks is None:
            self._learner.learn_schedule = schedule
            self._engine = self._new_engine()
            if (newest := self._owner.newest_snapshot()) is not None:
                self._engine.restore(_replace_schedule(newest.state, schedule))
            self._ticks = self._engine.ticks()
        elif self._learner.learn_schedule != schedule:
            raise ValueError(
                "first_update and update_frequency are those of the session's first "
                "episode: begin another session"
            )
        return self._ticks

    def _new_engine(self) -> Engine:
        owner, learner = self._owner, self._learner
        env = vector_of(self.env, owner.config.max_episode_steps)
        parts = Parts(
            agent=learner,
            collector=VectorCollector(env, learner, owner.config.seed),
            recorder=owner.services.recorder,
            snapshotter=owner.saver(self.session),
            control=owner.services.control,
            hooks=(SessionHook(self.session, learner.close_boundary),),
        )
        return Engine(parts, Cadence(budget=self._bound), owner.services.time)


def _replace_schedule(state: StateTree, schedule: LearnSchedule) -> StateTree:
    """Replaces the learning schedule in an engine's state.

    The schedule is an argument of the call and is not restored from the checkpoint.
    """
    every = schedule.every_env_steps
    following = (state["clock"]["env_steps"] // every + 1) * every
    learning = {"next": following, "warmup_end": schedule.warmup_env_steps}
    return {
        **state,
        "loop": {**state["loop"], "learning": {**state["loop"]["learning"], **learning}},
    }
