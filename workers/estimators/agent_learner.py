"""The learner of an agent.

It acts with a model function, stores transitions in a memory, and updates the model from samples.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from gymnasium import Space, spaces
from torch import Tensor

from workers.core.types import Array, Experience, LearnReport, LearnSchedule, StateTree
from workers.estimators.memories import Memory
from workers.supervised.batches import to_tensors
from workers.supervised.learner import ModelLearner, learn_report, update
from workers.supervised.model_function import ModelFunction
from workers.supervised.modes import Modes
from workers.supervised.run_session import EpisodeRecord, RunSession, RunValues
from workers.supervised.spec import RESULTS, EstimatorSpec
from workers.supervised.variables import Variables

STATE: Final = "state"
"""Name of the feature that agents pass to their model function: the observation."""


@dataclass(frozen=True, slots=True)
class EpisodeOptions:
    """Functions and options of an episode, with the names of `Agent.run_episode`'s parameters."""

    features: Callable[[Tensor], object]
    labels: Callable[[Mapping[str, object], Mapping[str, float]], object]
    no_run_hooks: bool
    global_step: Callable[[], int]
    update_episode_op: Callable[[], object]
    update_timestep_op: Callable[[], object]
    estimator_spec: Callable[..., EstimatorSpec]


@dataclass(slots=True)
class RewardStats:
    """Statistics of the current episode."""

    length: int = 0
    total: float = 0.0
    greatest: float = float("-inf")
    least: float = float("inf")
    updates: int = 0
    loss: Tensor | None = None
    """Loss of the last update; read from the device only when the episode ends."""
    seconds: float = 0.0
    """Seconds that earlier attempts spent on this episode."""

    def add(self, reward: float) -> None:
        """Adds the reward of one step."""
        self.length += 1
        self.total += reward
        self.greatest = max(self.greatest, reward)
        self.least = min(self.least, reward)

    def labels(self) -> dict[str, float]:
        """Returns the reward statistics among the labels; zeros before the first step."""
        has_steps = self.length > 0
        return {
            "max_reward": self.greatest if has_steps else 0.0,
            "min_reward": self.least if has_steps else 0.0,
            "avg_reward": self.total / max(1, self.length),
            "total_reward": self.total,
        }


class AgentLearner(ModelLearner):
    """Adapts a model function to the engine's agent interface.

    Args:
        model: The model function.
        variables: Modules, optimizers and counters of the model.
        memory: Memory in which transitions are stored.
        session: Session whose hooks are called around runs; `None` for an agent that only acts.
        action_space: Action space of the environment.
        learn_schedule: When the engine calls `learn`.
    """

    def __init__(
        self,
        model: ModelFunction,
        variables: Variables,
        memory: Memory,
        session: RunSession | None,
        action_space: Space[object],
        learn_schedule: LearnSchedule,
    ) -> None:
        super().__init__(model, variables)
        self.memory = memory
        self.learn_schedule = learn_schedule
        self.options = EpisodeOptions(
            features=lambda state: {STATE: state},
            labels=default_labels,
            no_run_hooks=True,
            global_step=lambda: variables.global_step,
            update_episode_op=self.count_episode,
            update_timestep_op=self.count_timestep,
            estimator_spec=lambda features, labels, mode, **options: model(
                variables, features, labels, mode, **options
            ),
        )
        self._session = session
        self._space = action_space
        self._first_action = (
            int(action_space.start) if isinstance(action_space, spaces.Discrete) else 0
        )
        self._stats = RewardStats()
        self._since = session.now() if session is not None else 0.0
        self._ends_episode = False
        """Whether an episode has ended whose record no run has returned yet."""
        self._has_run = False
        self._record: EpisodeRecord | None = None

    # Actor

    def act(self, observation: Array, *, explore: bool) -> Array:
        """Returns actions [B, ...]; with `explore`, calls `update_timestep_op` once."""
        options = self.options
        features = options.features(
            torch.from_numpy(np.array(observation)).to(self._variables.device)
        )
        if not explore:
            return self._to_space(options.estimator_spec(features, None, Modes.PREDICT))
        actions = self._to_space(
            options.estimator_spec(features, None, Modes.PREDICT, exploring=True)
        )
        options.update_timestep_op()
        return actions

    # Learner

    def observe(self, experience: Experience) -> None:
        """Stores one transition."""
        reward = float(experience.reward[0, 0])
        self.memory.step(
            action=experience.action[0, 0] - self._first_action
            if self._first_action
            else experience.action[0, 0],
            state=experience.observation[0, 0],
            reward=reward,
            done=experience.terminated[0, 0],
            next_state=experience.next_observation[0, 0],
            truncated=experience.truncated[0, 0],
        )
        self._stats.add(reward)
        if self._features is None:
            state = experience.observation[0, 0]
            self._features = {STATE: {"shape": list(state.shape), "dtype": str(state.dtype)}}
        if experience.episodes:
            self._ends_episode = True
            self.options.update_episode_op()

    def learn(self, updates: int) -> LearnReport:
        """Makes one update from a sample of the memory.

        If the memory holds too few transitions, the hooks are called around an empty run.
        """
        if updates < 1:
            return LearnReport(0)
        op = self._update if self.memory.can_sample() else self._run_empty
        return learn_report(self._run(op))

    def close_boundary(self) -> None:
        """Calls the hooks around an empty run, if they are due and this step has not called them.

        They are due at the end of an episode, and at every step if `no_run_hooks` is false.
        """
        if not self._has_run and (self._ends_episode or not self.options.no_run_hooks):
            self._run(self._run_empty)
        self._has_run = False

    def take_record(self) -> EpisodeRecord | None:
        """Returns and removes the record of the episode that ended; `None` if there is none."""
        record, self._record = self._record, None
        return record

    def metrics(self) -> dict[str, float]:
        """Returns the exploration rate, the learning rate and the number of rows in the memory."""
        rate = self._variables.exploration_rate()
        return {
            **({} if rate is None else {"explore/epsilon": rate}),
            "learning_rate": self.learning_rate,
            "memory/size": float(len(self.memory)),
        }

    def count_timestep(self) -> int:
        """Counts an action and returns the new count."""
        self._variables.global_timestep += 1
        return self._variables.global_timestep

    def count_episode(self) -> int:
        """Counts a finished episode and returns the new count."""
        self._variables.global_episode += 1
        return self._variables.global_episode

    # State

    def state_dict(self) -> StateTree:
        """Returns the learner's state and the statistics of the current episode."""
        stats = self._stats
        running = {name: getattr(stats, name) for name in RewardStats.__slots__}
        return {**super().state_dict(), "episode": {**running, "seconds": self._seconds()}}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the learner and the statistics of the current episode."""
        super().load_state_dict(state)
        self._stats = RewardStats(**state["episode"])
        self._since = self._session.now() if self._session is not None else 0.0

    # Private

    def _run(self, op: Callable[[], RunValues]) -> RunValues:
        self._has_run = True
        return op() if self._session is None else self._session.run(op)

    def _update(self) -> RunValues:
        options, device = self.options, self._variables.device
        batch = to_tensors(self.memory.sample(), device)
        features, labels = (
            options.features(batch[STATE]),
            options.labels(batch, self._stats.labels()),
        )
        before = options.global_step()
        values = update(
            self._variables, lambda: options.estimator_spec(features, labels, Modes.TRAIN)
        )
        self._stats.updates += options.global_step() - before
        return self._close_run(values)

    def _run_empty(self) -> RunValues:
        return self._close_run(RunValues())

    def _close_run(self, values: RunValues) -> RunValues:
        """Returns the values of a run; adds the episode's record if an episode has ended."""
        if values.loss is not None:
            self._stats.loss = values.loss
        if not self._ends_episode:
            return values
        self._ends_episode = False
        self._record = self._episode_record()
        self._stats, self._since = (
            RewardStats(),
            self._session.now() if self._session is not None else 0.0,
        )
        return RunValues(
            values.results, values.scalars, values.loss, self._record, values.has_learned
        )

    def _episode_record(self) -> EpisodeRecord:
        stats = self._stats
        return EpisodeRecord(
            episode=self._variables.global_episode,
            length=stats.length,
            total_reward=stats.total,
            mean_reward=stats.total / stats.length,
            max_reward=stats.greatest,
            min_reward=stats.least,
            updates=stats.updates,
            loss=None if stats.loss is None else float(stats.loss),
            epsilon=self._variables.exploration_rate(),
            seconds=self._seconds(),
        )

    def _seconds(self) -> float:
        return self._stats.seconds + (
            self._session.now() - self._since if self._session is not None else 0.0
        )

    def _to_space(self, spec: EstimatorSpec) -> Array:
        """Converts the actions of a spec to actions of the action space, clipped to its bounds."""
        if RESULTS not in spec.predictions:
            raise ValueError(
                f"an agent acts on predictions[{RESULTS!r}], "
                f"the model predicts only {', '.join(spec.predictions)}"
            )
        actions: Array = spec.predictions[RESULTS].detach().cpu().numpy()
        space = self._space
        if isinstance(space, spaces.Box):
            return np.clip(actions.reshape(-1, *space.shape), space.low, space.high).astype(
                space.dtype
            )
        return actions + self._first_action if self._first_action else actions


def default_labels(batch: Mapping[str, object], rewards: Mapping[str, float]) -> dict[str, object]:
    """Returns the labels of a sampled batch: its transitions, and the episode's rewards.

    `done` is true in terminal states only. Where it is false the target must be bootstrapped, also
    if `truncated` is true.
    """
    return {**{key: value for key, value in batch.items() if key != STATE}, **rewards}
