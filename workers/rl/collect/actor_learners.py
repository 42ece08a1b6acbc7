"""The collector of A3C: subprocesses that collect and learn, each with its own environment.

In each collect, the subprocesses claim its env_steps one by one from a shared counter. Between two
collects all subprocesses are idle, so budgets and evaluations are exact to the env_step, and a
snapshot holds a consistent state of all of them. This module owns the subprocesses; how they learn
is up to their `AsynchronousLearner`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, Protocol

from workers.core.errors import WorkerError
from workers.core.protocols import TrainableAgent
from workers.core.rng import global_state, load_global_state
from workers.core.shared_counter import SharedCount
from workers.core.state_tree import arrays_to_tensors, tensors_to_arrays
from workers.core.subprocess_pool import Command, SubprocessPool
from workers.core.types import (
    CollectPlan,
    EpisodeEnd,
    Experience,
    LearnReport,
    RestoreReport,
    StateTree,
)
from workers.rl.collect.vector_collector import RestorableCollector, VectorCollector

_ONE_STEP: Final = CollectPlan(vector_steps=1)


class ActorLearnerError(WorkerError):
    """An actor-learner process raised an exception, or ended."""


class AsynchronousLearner(Protocol):
    """The learner in a subprocess; its network parameters are shared with the other learners."""

    learning_rate: float

    def report(self) -> LearnReport:
        """Returns the report of the updates since the last call."""

    def own_state(self) -> StateTree:
        """Returns the state that is not shared between the subprocesses."""

    def load_own_state(self, state: StateTree) -> None:
        """Restores the state that is not shared from `state`."""

    def forget_rollout(self) -> None:
        """Discards the transitions since the last update, because their episode was lost."""


class _CollectResult(NamedTuple):
    """The result of one subprocess in a collect."""

    env_steps: int
    episodes: list[EpisodeEnd]
    """`vector_step` is the index of the claimed env_step within the collect."""
    report: LearnReport


class ActorLearner:
    """Executes the commands of `ActorLearners` in one subprocess; built there.

    Args:
        collector: Steps the subprocess's environment.
        observe: Called with each env_step; makes an update when one is due.
        learner: The subprocess's learner.
        count: Shared counter of the env_steps that were claimed in this collect.
    """

    def __init__(
        self,
        collector: VectorCollector,
        observe: Callable[[Experience], None],
        learner: AsynchronousLearner,
        count: SharedCount,
    ) -> None:
        self._collector = collector
        self._observe = observe
        self._learner = learner
        self._count = count

    def __call__(self, order: Command) -> Any:
        """Executes a command and returns its result.

        Raises:
            ValueError: If the command is unknown.
        """
        match order:
            case ("ready",):
                return None
            case ("gather", env_steps, learning_rate):
                self._learner.learning_rate = learning_rate
                return self._gather(env_steps)
            case ("state",):
                return tensors_to_arrays(self._state())
            case ("restore", state):
                return self._restore(arrays_to_tensors(state))
            case _:
                raise ValueError(f"unknown command {order[0]!r}")

    def _gather(self, env_steps: int) -> _CollectResult:
        collect, observe, claim = self._collector.collect, self._observe, self._count.add
        made, episodes = 0, list[EpisodeEnd]()
        while (number := claim(1)) <= env_steps:
            experience = collect(_ONE_STEP)
            observe(experience)
            made += 1
            if experience.episodes:
                episodes += [end._replace(vector_step=number - 1) for end in experience.episodes]
        return _CollectResult(made, episodes, self._learner.report())

    def _state(self) -> StateTree:
        return {
            "learner": self._learner.own_state(),
            "collector": self._collector.state_dict(),
            "rng": global_state(),
        }

    def _restore(self, state: StateTree) -> RestoreReport:
        report = self._collector.restore(state["collector"])
        self._learner.load_own_state(state["learner"])
        if not report.is_exact:
            self._learner.forget_rollout()
        load_global_state(state["rng"])
        return report


class ActorLearners(RestorableCollector):
    """Collects with several `ActorLearner` subprocesses, which report episodes and updates.

    The transitions stay in the subprocesses.

    Args:
        makers: One factory per subprocess, called there; the tensors and the counter of the
            `ActorLearner`s are shared.
        agent: Its learning rate at the beginning of a collect is used throughout the collect.
        count: The shared counter of claimed env_steps.
    """

    num_envs = 1

    def __init__(
        self,
        makers: Sequence[Callable[[], ActorLearner]],
        agent: TrainableAgent,
        count: SharedCount,
    ) -> None:
        self._agent = agent
        self._count = count
        self._size = len(makers)
        self._subprocesses = SubprocessPool("actor-learner", ActorLearnerError, makers)

    def wait(self) -> None:
        """Waits until all subprocesses are built, so that all take part in the first collect.

        Raises:
            ActorLearnerError: If an `ActorLearner` cannot be built, or a subprocess ended.
        """
        self._subprocesses.execute([("ready",)] * self._size)

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the subprocesses."""
        return self._subprocesses.pids

    def collect(self, plan: CollectPlan) -> Experience:
        """Has the subprocesses make exactly the env_steps of the plan, together.

        The returned experience has ended episodes and learn reports, but no transitions.

        Raises:
            ValueError: If the plan asks for episodes.
            ActorLearnerError: If a subprocess raised an exception or ended.
        """
        env_steps = plan.vector_steps or plan.env_steps
        if env_steps is None or plan.needs_whole_episodes:
            raise ValueError("actor-learners collect env_steps: the plan must not ask for episodes")
        self._count.value = 0
        parts: list[_CollectResult] = self._subprocesses.execute(
            [("gather", env_steps, self._agent.learning_rate)] * self._size
        )
        ends = sorted(
            (end for part in parts for end in part.episodes), key=lambda end: end.vector_step
        )
        learnt = [part.report for part in parts if part.report.updates]
        made = sum(part.env_steps for part in parts)
        return replace(
            Experience.without_transitions(self.num_envs),
            episodes=ends,
            env_steps=made,
            learn_reports=learnt,
        )

    def state_dict(self) -> StateTree:
        """Returns the unshared state of each subprocess: rollout, random numbers and episode.

        Raises:
            ActorLearnerError: If a subprocess ended or is not idle.
        """
        if not self._subprocesses.is_idle:
            raise ActorLearnerError(
                "the actor-learners have no common state any more: one is dead, or was left in the "
                "middle of a collect"
            )
        return {
            "processes": [
                arrays_to_tensors(state)
                for state in self._subprocesses.execute([("state",)] * self._size)
            ]
        }

    def restore(self, state: StateTree) -> RestoreReport:
        """Restores the state of each subprocess; the resume is exact only with one subprocess.

        Raises:
            ValueError: If `state` is of another number of subprocesses.
        """
        states = state["processes"]
        if len(states) != self._size:
            raise ValueError(
                f"the state is of {len(states)} actor-learners, here are {self._size}: build as "
                "many"
            )
        reports: list[RestoreReport] = self._subprocesses.execute(
            [("restore", tensors_to_arrays(one)) for one in states]
        )
        notes = [note for report in reports for note in report.notes]
        if self._size > 1:
            message = (
                f"{self._size} actor-learners write to what they share in the order of their "
                "timing, so the resume is statistical."
            )
            notes.append(("resume_statistical", message))
        return RestoreReport(is_exact=not notes, notes=tuple(notes))

    def close(self) -> None:
        """Ends the subprocesses."""
        self._subprocesses.close()
