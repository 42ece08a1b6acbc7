"""The collector of A3C: processes that gather and learn, each with its own environment.

A collect grants them its env_steps, which they claim one by one from a shared count. Between two
collects all of them rest, so budgets and evaluations fall on exact env_steps, and a snapshot holds
one state of the whole. Owns the processes; must not know how they learn.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, Protocol

from workers.core.errors import WorkerError
from workers.core.protocols import TrainableAgent
from workers.core.rng import global_state, load_global_state
from workers.core.shared_counter import SharedCount
from workers.core.state_tree import with_tensors, without_tensors
from workers.core.subprocess_pool import Command, SubprocessPool
from workers.core.types import (
    CollectPlan,
    EpisodeEnd,
    Experience,
    LearnReport,
    RestoreReport,
    StateTree,
)
from workers.rl.collect.vector_collector import RestoringCollector, VectorCollector

_ONE_STEP: Final = CollectPlan(vector_steps=1)


class ActorLearnerError(WorkerError):
    """An actor-learner process raised, or died."""


class AsynchronousLearner(Protocol):
    """What learns in a process."""

    learning_rate: float

    def report(self) -> LearnReport:
        """Returns what was learnt since this was last asked."""

    def own_state(self) -> StateTree:
        """Returns what is not shared."""

    def load_own_state(self, state: StateTree) -> None:
        """Brings to a captured state what is not shared."""

    def forget_rollout(self) -> None:
        """Gives up what was gathered and not yet learnt from: its episode does not go on."""


class _Gathered(NamedTuple):
    """A process's part of a collect."""

    env_steps: int
    episodes: list[EpisodeEnd]
    """`vector_step` is the index of the claimed env_step within the collect."""
    report: LearnReport


class ActorLearner:
    """One of the processes, built in it.

    Args:
        collector: Steps its environment.
        observe: Called with each step; learns from it when an update is due.
        learner: What learns there.
        count: Of the env_steps of a collect that were claimed.
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
        """Carries out an order."""
        match order:
            case ("ready",):
                return None
            case ("gather", env_steps, learning_rate):
                self._learner.learning_rate = learning_rate
                return self._gather(env_steps)
            case ("state",):
                return without_tensors(self._state())
            case ("restore", state):
                return self._restore(with_tensors(state))
            case _:
                raise ValueError(f"unknown order {order[0]!r}")

    def _gather(self, env_steps: int) -> _Gathered:
        collect, observe, claim = self._collector.collect, self._observe, self._count.add
        made, episodes = 0, list[EpisodeEnd]()
        while (number := claim(1)) <= env_steps:
            experience = collect(_ONE_STEP)
            observe(experience)
            made += 1
            if experience.episodes:
                episodes += [end._replace(vector_step=number - 1) for end in experience.episodes]
        return _Gathered(made, episodes, self._learner.report())

    def _state(self) -> StateTree:
        return {
            "learner": self._learner.own_state(),
            "collector": self._collector.state_dict(),
            "rng": global_state(),
        }

    def _restore(self, state: StateTree) -> RestoreReport:
        report = self._collector.restore(state["collector"])
        self._learner.load_own_state(state["learner"])
        if not report.exact:
            self._learner.forget_rollout()
        load_global_state(state["rng"])
        return report


class ActorLearners(RestoringCollector):
    """The collector whose processes keep their transitions and report what they learnt.

    Args:
        makers: One per process: returns its `ActorLearner`, whose tensors and count are shared.
        agent: Its learning rate holds for the next collect.
        count: Shared with the processes.
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
        """Waits until all processes are there, so that none makes the first env_steps alone.

        Raises:
            ActorLearnerError: If one cannot be built, or is dead.
        """
        self._subprocesses.execute([("ready",)] * self._size)

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids."""
        return self._subprocesses.pids

    def collect(self, plan: CollectPlan) -> Experience:
        """Lets the processes make exactly so many env_steps.

        The experience has none of their transitions.

        Raises:
            ValueError: If the plan is one of episodes.
            ActorLearnerError: If a process raised, or is dead.
        """
        env_steps = plan.vector_steps or plan.env_steps
        if env_steps is None or plan.whole_episodes:
            raise ValueError("actor-learners are granted env_steps, no episodes")
        self._count.value = 0
        parts: list[_Gathered] = self._subprocesses.execute(
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
            learnt=learnt,
        )

    def state_dict(self) -> StateTree:
        """Returns each process's own state: its rollout, random numbers and episode.

        Raises:
            ActorLearnerError: If they do not all live and rest.
        """
        if not self._subprocesses.is_idle:
            raise ActorLearnerError(
                "the actor-learners have no common state any more: one is dead, or was left in the "
                "middle of a collect"
            )
        return {
            "processes": [
                with_tensors(state)
                for state in self._subprocesses.execute([("state",)] * self._size)
            ]
        }

    def restore(self, state: StateTree) -> RestoreReport:
        """Gives each process its own back; exact with one process alone.

        Raises:
            ValueError: If the state is of another number of processes.
        """
        states = state["processes"]
        if len(states) != self._size:
            raise ValueError(
                f"the state is of {len(states)} actor-learners, here are {self._size}: build as "
                "many"
            )
        reports: list[RestoreReport] = self._subprocesses.execute(
            [("restore", without_tensors(one)) for one in states]
        )
        notes = [note for report in reports for note in report.notes]
        if self._size > 1:
            message = (
                f"{self._size} actor-learners write to what they share in the order of their "
                "timing, so the resume is statistical."
            )
            notes.append(("resume_statistical", message))
        return RestoreReport(exact=not notes, notes=tuple(notes))

    def close(self) -> None:
        """Ends the processes."""
        self._subprocesses.close()
