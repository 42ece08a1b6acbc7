"""Parts of the engine made of a trainer's algorithm.

The algorithm is the agent, its sampler the collector, its number of epochs the budget.
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
from workers.entrypoints.signal_handlers import handled_signals
from workers.entrypoints.trainer_parts.episode_batch import EpisodeBatch, experience_of

_NO_SCHEDULE: Final = LearnSchedule(every_env_steps=1, updates=1)
_NO_PLAN: Final = CollectPlan(env_steps=1, whole_episodes=True)


class EpochBounds:
    """Ends a training at an epoch, and a collect of an agent's own at the end of the batch."""

    def __init__(self) -> None:
        self.epochs = 0
        self.env_steps = UNLIMITED
        """Where the running batch ends."""
        self.quiet_until: Final = UNLIMITED

    def exhausted(self, clock: ClockView) -> bool:
        """Returns whether the last epoch is over."""
        return clock.epochs >= self.epochs

    def room(self, clock: ClockView, unit: Unit) -> int:
        """Returns how much of a unit is left."""
        if unit is Unit.ENV_STEPS:
            return max(0, self.env_steps - clock.env_steps)
        return max(0, self.epochs - clock.epochs) if unit is Unit.EPOCHS else UNLIMITED


class KeptEpochs:
    """Fires when an epoch closed that is kept as a snapshot.

    Args:
        keeps: Says so of the index of an epoch.
    """

    next: Final = UNLIMITED
    quiet_until: Final = UNLIMITED

    def __init__(self, keeps: Callable[[int], bool]) -> None:
        self._keeps = keeps
        self._seen = 0

    def due(self, clock: ClockView) -> int:
        """Returns 1 once per epoch that is kept."""
        if clock.epochs == self._seen:
            return 0
        self._seen = clock.epochs
        return int(self._keeps(clock.epochs - 1))

    def skip(self, clock: ClockView) -> None:
        """Counts the epochs up to now as seen."""
        self._seen = clock.epochs

    def state_dict(self) -> StateTree:
        """Returns the number of epochs seen."""
        return {"seen": self._seen}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the number."""
        self._seen = int(state["seen"])


class LeavingHook:
    """Ends the run at the boundary of an epoch whose body was left by `break`."""

    def __init__(self) -> None:
        self.leaving = False

    def on_tick(self, view: EngineView, reports: object) -> None:
        """Asks for the end."""
        del reports
        if self.leaving:
            view.request_stop(StopReason.REQUESTED)


class AlgorithmAgent:
    """An algorithm as the engine's agent: it has state, and may hold a built-in agent that learns.

    Args:
        algorithm: Its `agent`, if it is one of ours, is asked for everything; else it learns by
            itself.
        skip: Objects that are saved elsewhere.
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
        """Asks the agent."""
        return self._own().act(observation, explore=explore)

    def observe(self, experience: Experience) -> None:
        """Lets the agent store experience; an algorithm that learns by itself has it already."""
        if self._agent is not None:
            self._agent.observe(experience)

    def learn(self, updates: int) -> LearnReport:
        """Asks the agent."""
        return self._own().learn(updates)

    @property
    def learning_rate(self) -> float:
        """Step size of the agent's next update."""
        return self._own().learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self._own().learning_rate = value

    def metrics(self) -> Mapping[str, float]:
        """Asks the agent, if there is one."""
        return {} if self._agent is None else self._agent.metrics()

    def eval_mode(self) -> AbstractContextManager[None]:
        """Asks the agent, if there is one."""
        return nullcontext() if self._agent is None else self._agent.eval_mode()

    def acting_module(self) -> Any:
        """Asks the agent."""
        return self._own().acting_module()

    def state_dict(self) -> StateTree:
        """Returns the states of the algorithm and of its agent; see `core.object_state`."""
        state: StateTree = {"algorithm": state_of(self._algorithm, "algo", self._skip)}
        return state if self._agent is None else {**state, "agent": self._agent.state_dict()}

    def load_state_dict(self, state: StateTree) -> None:
        """Brings algorithm and agent to a captured state."""
        load_state(self._algorithm, state["algorithm"], "algo")
        if self._agent is not None:
            self._agent.load_state_dict(state["agent"])

    def _own(self) -> TrainableAgent:
        if self._agent is None:
            raise ValueError(
                f"{type(self._algorithm).__name__} has no `agent` of ours: "
                "it learns by its own code, not by trainer.learn"
            )
        return self._agent


def agent_of(algorithm: object) -> TrainableAgent | None:
    """Returns the built-in agent that an algorithm holds as `agent`, if there is one."""
    agent: TrainableAgent | None = getattr(algorithm, "agent", None)
    return agent if hasattr(agent, "learn_schedule") and hasattr(agent, "collect_plan") else None


class SamplerCollector:
    """An algorithm's sampler as the engine's collector.

    Args:
        sampler: `None` for an algorithm without one.
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
        """Returns a batch of episodes that the engine counted.

        Args:
            itr: Passed to the sampler, as the next three are.
            batch_size: env_steps wanted, or what else the sampler counts.
            agent_update: New parameters or another policy.
            env_update: Another environment, or a function of the old one.
            collect: `Engine.collect`.
        """
        self._obtain = partial(
            self.sampler.obtain_samples,
            itr,
            batch_size,
            agent_update=agent_update,
            env_update=env_update,
        )
        try:
            collect(CollectPlan(env_steps=batch_size, whole_episodes=True))
            batch = self._batch
        finally:
            self._obtain = self._batch = None
        if batch is None:
            raise TypeError("the engine asked another collector")
        return batch

    def collect(self, plan: CollectPlan) -> Experience:
        """Asks the sampler for what `obtain` wants."""
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
        """Returns the sampler's state, if it has one."""
        return {"sampler": state_of(self.sampler, "sampler") if has_state(self.sampler) else None}

    def load_state_dict(self, state: StateTree) -> None:
        """Like `restore`."""
        self.restore(state)

    def restore(self, state: StateTree) -> RestoreReport:
        """Brings the sampler to a captured state.

        Batches are whole episodes, so none is in the middle of one.
        """
        if has_state(self.sampler):
            load_state(self.sampler, state["sampler"], "sampler")
        return RestoreReport()


def collector_of(algorithm: object) -> Collector:
    """Returns the collector of an algorithm: its own, or one that asks its `_sampler`."""
    own: Collector | None = getattr(algorithm, "collector", None)
    return SamplerCollector(getattr(algorithm, "_sampler", None)) if own is None else own


def ended_by_sigterm() -> AbstractContextManager[None]:
    """Returns a context in which SIGTERM raises `SystemExit`, as an exception would end it.

    A handler that the caller installed before stays.
    """

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    unhandled = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    return handled_signals([signal.SIGTERM] if unhandled else [], end)
