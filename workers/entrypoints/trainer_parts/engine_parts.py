"""Adapters that make a trainer's algorithm usable as parts of the engine.

The algorithm becomes the agent, its sampler the collector, the number of epochs the budget.
"""

import signal
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Final

from workers.core.null_parts import NoMemory
from workers.core.object_state import has_state, load_state, state_of
from workers.core.protocols import ClockView, Collector, EngineView, TrainableAgent
from workers.core.types import (
    Array,
    CollectPlan,
    Experience,
    LearnReport,
    LearnSchedule,
    RestoreReport,
    StateTree,
    StopReason,
    Unit,
)
from workers.engine.budget import UNLIMITED
from workers.entrypoints.signal_handlers import handle_signals
from workers.entrypoints.trainer_parts.episode_batch import EpisodeBatch, experience_of

_NO_SCHEDULE: Final = LearnSchedule(every_env_steps=1, updates=1)
_NO_PLAN: Final = CollectPlan(env_steps=1, needs_whole_episodes=True)


class EpochBounds:
    """A budget in epochs for the training, and in env_steps for one `Trainer.advance`."""

    def __init__(self) -> None:
        self.epochs = 0
        self.env_steps = UNLIMITED
        """Count of env_steps at which the current batch ends."""
        self.quiet_until: Final = UNLIMITED

    def is_exhausted(self, clock: ClockView) -> bool:
        """Returns whether the last epoch has ended."""
        return clock.epochs >= self.epochs

    def room(self, clock: ClockView, unit: Unit) -> int:
        """Returns how many epochs or env_steps are left; other units are unlimited."""
        if unit is Unit.ENV_STEPS:
            return max(0, self.env_steps - clock.env_steps)
        return max(0, self.epochs - clock.epochs) if unit is Unit.EPOCHS else UNLIMITED


class KeptEpochTrigger:
    """A trigger that fires at the end of each epoch that is kept as a snapshot.

    Args:
        keeps: Returns whether the epoch with the given index is kept.
    """

    next: Final = UNLIMITED
    quiet_until: Final = UNLIMITED

    def __init__(self, keeps: Callable[[int], bool]) -> None:
        self._keeps = keeps
        self._seen = 0

    def take_due(self, clock: ClockView) -> int:
        """Returns 1 for the first call after the end of an epoch that is kept, otherwise 0."""
        if clock.epochs == self._seen:
            return 0
        self._seen = clock.epochs
        return int(self._keeps(clock.epochs - 1))

    def skip(self, clock: ClockView) -> None:
        """Marks all epochs up to `clock` as seen."""
        self._seen = clock.epochs

    def state_dict(self) -> StateTree:
        """Returns the number of epochs seen."""
        return {"seen": self._seen}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the number of epochs seen."""
        self._seen = int(state["seen"])


class LeavingHook:
    """Ends the run at the end of an epoch whose body was left by `break`."""

    def __init__(self) -> None:
        self.is_leaving = False

    def on_tick(self, view: EngineView, reports: object) -> None:
        """Requests the stop, if the body was left."""
        del reports
        if self.is_leaving:
            view.request_stop(StopReason.REQUESTED)


class AlgorithmAgent:
    """Adapts an algorithm to the engine's agent interface.

    Calls are forwarded to the built-in agent that the algorithm holds as `agent`. Without such an
    agent, the algorithm learns in its own code.

    Args:
        algorithm: The algorithm; its state is part of `state_dict`.
        skip: Objects among its attributes that are saved elsewhere.
    """

    def __init__(self, algorithm: object, skip: tuple[object, ...]) -> None:
        self._algorithm = algorithm
        self._agent = agent_of(algorithm)
        self._skip = (*skip, self._agent)
        self.memory: Any = NoMemory() if self._agent is None else self._agent.memory
        self.collect_plan = _NO_PLAN if self._agent is None else self._agent.collect_plan
        self.learn_schedule = _NO_SCHEDULE if self._agent is None else self._agent.learn_schedule
        self.report_names = () if self._agent is None else self._agent.report_names

    def act(self, observation: Array, *, explore: bool) -> Array:
        """Returns the actions [B, ...] of the built-in agent."""
        return self._built_in_agent().act(observation, explore=explore)

    def observe(self, experience: Experience) -> None:
        """Passes experience to the built-in agent, if there is one."""
        if self._agent is not None:
            self._agent.observe(experience)

    def learn(self, updates: int) -> LearnReport:
        """Makes updates of the built-in agent and returns its report."""
        return self._built_in_agent().learn(updates)

    @property
    def learning_rate(self) -> float:
        """Learning rate of the built-in agent's next update."""
        return self._built_in_agent().learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self._built_in_agent().learning_rate = value

    def metrics(self) -> Mapping[str, float]:
        """Returns the built-in agent's metrics; empty if there is no such agent."""
        return {} if self._agent is None else self._agent.metrics()

    def eval_mode(self) -> AbstractContextManager[None]:
        """Returns the built-in agent's evaluation context; does nothing without such an agent."""
        return nullcontext() if self._agent is None else self._agent.eval_mode()

    def acting_module(self) -> Any:
        """Returns the acting module of the built-in agent."""
        return self._built_in_agent().acting_module()

    def state_dict(self) -> StateTree:
        """Returns the states of the algorithm and of its agent; see `core.object_state`."""
        state: StateTree = {"algorithm": state_of(self._algorithm, "algo", self._skip)}
        return state if self._agent is None else {**state, "agent": self._agent.state_dict()}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the algorithm and its agent."""
        load_state(self._algorithm, state["algorithm"], "algo")
        if self._agent is not None:
            self._agent.load_state_dict(state["agent"])

    def _built_in_agent(self) -> TrainableAgent:
        if self._agent is None:
            raise ValueError(
                f"{type(self._algorithm).__name__} has no built-in `agent`: "
                "it learns by its own code, not by trainer.learn"
            )
        return self._agent


def agent_of(algorithm: object) -> TrainableAgent | None:
    """Returns the built-in agent that an algorithm holds as `agent`, if there is one."""
    agent: TrainableAgent | None = getattr(algorithm, "agent", None)
    return agent if hasattr(agent, "learn_schedule") and hasattr(agent, "collect_plan") else None


class SamplerCollector:
    """Adapts an algorithm's sampler to the engine's collector interface.

    Args:
        sampler: The sampler; `None` for an algorithm without one.
    """

    num_envs = 1

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler
        self._obtain: Callable[[], object] | None = None
        self._batch: EpisodeBatch | None = None

    def obtain(
        self,
        itr: int,
        batch_size: int,
        agent_update: object,
        env_update: object,
        *,
        collect: Callable[[CollectPlan], Experience],
    ) -> EpisodeBatch:
        """Collects a batch of episodes through the engine, which counts its env_steps.

        Args:
            itr: Number of the iteration, passed to the sampler.
            batch_size: Number of env_steps or, depending on the sampler's unit, of episodes.
            agent_update: New parameters or another policy for the sampler's workers.
            env_update: Another environment, or a function that maps the old one to a new one.
            collect: `Engine.collect`, which calls this object's `collect`.
        """
        self._obtain = partial(
            self.sampler.obtain_samples,
            itr,
            batch_size,
            agent_update=agent_update,
            env_update=env_update,
        )
        try:
            collect(CollectPlan(env_steps=batch_size, needs_whole_episodes=True))
            batch = self._batch
        finally:
            self._obtain = self._batch = None
        if batch is None:
            raise TypeError("the engine has collected with another collector than this one")
        return batch

    def collect(self, plan: CollectPlan) -> Experience:
        """Calls the sampler with the arguments of the current `obtain`, and ignores the plan."""
        del plan
        if self._obtain is None:
            raise ValueError(
                "an algorithm with a sampler collects by trainer.obtain_episodes "
                "or trainer.obtain_samples"
            )
        batch = self._obtain()
        if not isinstance(batch, EpisodeBatch):
            raise TypeError(
                f"{type(self.sampler).__name__}.obtain_samples must return an EpisodeBatch, "
                f"not a {type(batch).__name__}"
            )
        self._batch = batch
        return experience_of(batch)

    def state_dict(self) -> StateTree:
        """Returns the sampler's state; `None` for a sampler without state."""
        return {"sampler": state_of(self.sampler, "sampler") if has_state(self.sampler) else None}

    def load_state_dict(self, state: StateTree) -> None:
        """Calls `restore` and drops its report."""
        self.restore(state)

    def restore(self, state: StateTree) -> RestoreReport:
        """Restores the sampler.

        The restore is exact: batches are whole episodes, so no episode is in progress.
        """
        if has_state(self.sampler):
            load_state(self.sampler, state["sampler"], "sampler")
        return RestoreReport()


def collector_of(algorithm: object) -> Collector:
    """Returns an algorithm's attribute `collector` or, without one, its adapted `_sampler`."""
    own: Collector | None = getattr(algorithm, "collector", None)
    return SamplerCollector(getattr(algorithm, "_sampler", None)) if own is None else own


def exit_at_sigterm() -> AbstractContextManager[None]:
    """Returns a context in which SIGTERM raises `SystemExit`, so that a snapshot is saved.

    A handler of SIGTERM that the caller has installed is kept.
    """

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    is_unhandled = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    return handle_signals([signal.SIGTERM] if is_unhandled else [], end)
