"""Agents with a recurrent layer: recurrent states of each environment while acting.

B environments, S numbers of a recurrent state.
"""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from workers.core.types import AgentContext, Array, CollectPlan, Experience, StateTree
from workers.rl.agents.shells.learning import LearningAgent
from workers.rl.agents.shells.rollout_agent import RolloutAgent, RolloutParts, rollout_fields
from workers.rl.memory.rollout import Rollout

States = npt.NDArray[np.float32]


class RecurrentState:
    """One recurrent state for each of B environments; zeros where an episode begins.

    The states of the training environments are replaced after each exploring action. The state
    after a greedy action is only pending: `commit_evaluation_step` makes it current once the action
    was executed. Without calls to `commit_evaluation_step` each greedy action is treated as the
    first of an episode.

    Args:
        size: S, numbers of one state.
        num_envs: B of the training environment.
    """

    def __init__(self, size: int, num_envs: int) -> None:
        self._size = size
        self._training: States = np.zeros((num_envs, size), np.float32)
        self._evaluation: States = np.zeros((0, size), np.float32)
        self._proposed: States | None = None

    def read(self, count: int, *, explore: bool) -> States:
        """Returns the states float32 [count, S] to act with, not to be written.

        They are zeros if `count` differs from the number of states that are kept.
        """
        kept = self._training if explore else self._evaluation
        return kept if len(kept) == count else np.zeros((count, self._size), np.float32)

    def store(self, states: Array, *, explore: bool) -> None:
        """Stores the states float32 [count, S] after the actions.

        Training states are stored only if `count` is the number of training environments.
        """
        if not explore:
            self._proposed = states
        elif len(states) == len(self._training):
            self._training = states

    def reset_ended(self, ended: npt.NDArray[np.bool_]) -> None:
        """Resets the states of the training environments, bool [B], whose episode ended."""
        if ended.any():
            self._training = np.where(ended[:, np.newaxis], np.float32(0), self._training)

    def commit_evaluation_step(self, reset: npt.NDArray[np.bool_]) -> None:
        """Makes the states after the last greedy actions current: the actions were executed.

        Args:
            reset: bool [B]: the episode ended or was abandoned, so its state becomes zeros.
        """
        if self._proposed is not None:
            self._evaluation, self._proposed = (
                np.where(reset[:, np.newaxis], np.float32(0), self._proposed),
                None,
            )

    def discard_evaluation(self) -> None:
        """Discards the states of an earlier evaluation."""
        self._evaluation, self._proposed = np.zeros((0, self._size), np.float32), None

    def state_dict(self) -> StateTree:
        """Returns the training states; states of an evaluation are not saved."""
        return {"training": self._training}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the training states and discards the states of an evaluation.

        Raises:
            ValueError: If the stored states have another size or number of environments.
        """
        stored = np.array(state["training"], np.float32)
        if stored.shape != self._training.shape:
            raise ValueError(
                f"the stored recurrent states of shape {stored.shape} do not fit those of shape "
                f"{self._training.shape}"
            )
        self._training = stored
        self.discard_evaluation()


class RecurrentActing(LearningAgent[Any], ABC):
    """Mixin in front of a shell: acts with a recurrent state for each environment.

    A subclass calls `create_states` after the shell's constructor.
    """

    exportable = False
    """An exported module receives one observation; the policy needs the recurrent state too."""

    def create_states(self, size: int, num_envs: int) -> None:
        """Creates the states: `size` numbers for each of `num_envs` environments."""
        self._recurrent = RecurrentState(size, num_envs)

    @property
    def collect_plan(self) -> CollectPlan:
        """One vector step, so that `observe` can reset states before the next action."""
        return CollectPlan(vector_steps=1)

    @abstractmethod
    def step(self, observation: Array, before: Array, *, explore: bool) -> tuple[Tensor, Tensor]:
        """Returns raw actions [B, ...] and the states [B, S] after this step.

        Args:
            observation: [B, ...]
            before: States before this step, float32 [B, S].
            explore: Whether the actions are exploring ones of training.
        """

    def act(self, observation: Array, *, explore: bool) -> Array:
        """Returns actions [B, ...].

        The states after greedy actions become current in `observe_evaluation`.
        """
        before = self._recurrent.read(len(observation), explore=explore)
        with torch.inference_mode():
            raw, after = self.step(observation, before, explore=explore)
        self._recurrent.store(after.cpu().numpy(), explore=explore)
        actions: Array = raw.cpu().numpy()
        return self.explore_actions(actions) if explore else self.actions.to_space(actions)

    def observe(self, experience: Experience) -> None:
        """Copies the transitions into the memory and resets the states of ended episodes."""
        super().observe(experience)
        if self._training.is_on:
            self._recurrent.reset_ended(experience.terminated[-1] | experience.truncated[-1])

    def mark_lost_episodes(self, lost: npt.NDArray[np.bool_]) -> None:
        """Also resets the states of these environments; see `LearningAgent.mark_lost_episodes`."""
        super().mark_lost_episodes(lost)
        self._recurrent.reset_ended(lost)

    def observe_evaluation(
        self,
        observation: Array,
        reward: Array,
        terminated: npt.NDArray[np.bool_],
        reset: npt.NDArray[np.bool_],
    ) -> None:
        """Makes the states after a step of an evaluation current.

        `reset` bool [B] marks the environments whose episode ended or was abandoned.
        """
        del observation, reward, terminated
        self._recurrent.commit_evaluation_step(reset)

    def eval_mode(self) -> AbstractContextManager[None]:
        """Returns a context in which the agent neither stores transitions nor learns.

        The states of an earlier evaluation are discarded.
        """
        self._recurrent.discard_evaluation()
        return super().eval_mode()

    def acting_module(self) -> Any:
        """Raises TypeError: the policy needs a recurrent state besides the observation."""
        raise TypeError(
            "this agent cannot be exported: it acts on all observations of an episode, an exported "
            "module on one"
        )

    def state_dict(self) -> StateTree:
        """Returns the shell's state and the recurrent states of training."""
        return {**super().state_dict(), "recurrent": self._recurrent.state_dict()}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores `state` in a new agent of the same definition."""
        super().load_state_dict(state)
        self._recurrent.load_state_dict(state["recurrent"])


class RecurrentAgent(RecurrentActing, RolloutAgent):
    """A `RolloutAgent` with a recurrent state for each environment.

    Args:
        parts: Algorithm and settings; the model of the algorithm is a
            `workers.rl.agents.recurrent_ppo.RecurrentActorCritic`.
        context: Seed, device and number of environments.
    """

    def __init__(self, parts: RolloutParts, context: AgentContext) -> None:
        super().__init__(parts, context)
        algorithm: Any = parts.algorithm
        self._model = algorithm.model
        size = self._model.memory.state_size
        self.create_states(size, context.num_envs)
        self.memory = Rollout(
            parts.vector_steps,
            context.num_envs,
            {**rollout_fields(self._model), "state": ((size,), np.float32)},
        )
        self._before: list[Array] = []
        """The states before each step since the last `observe`, [B, S] each."""

    def step(self, observation: Array, before: Array, *, explore: bool) -> tuple[Tensor, Tensor]:
        """Returns raw actions [B, ...] and the states [B, S] after this step."""
        named = self.named_parameters()
        read = (
            self.normalise_step(observation) if explore else self.normalisers.normalise(observation)
        )
        states = self._model.step(named, self._tensor(read), self._tensor(before))
        outputs = self._model.heads(named, states)[0]
        count = len(observation)
        drawn = self.acting_noise(count) if explore else self.evaluation_noise(count)
        if explore:
            self._before.append(before)
        noise = self._tensor(drawn[0]) if drawn else None
        return self._model.policy.sample_tensor(named, outputs, noise), states

    def observe(self, experience: Experience) -> None:
        """Copies the transitions into the rollout and resets the states of ended episodes."""
        super().observe(experience)
        self._before.clear()

    def load_state_dict(self, state: StateTree) -> None:
        """Restores `state` in a new agent of the same definition."""
        super().load_state_dict(state)
        self._before.clear()

    def _extra_columns(self, experience: Experience) -> tuple[Array, ...]:
        """Returns the states before each step, float32 [T, B, S].

        Zeros for experience that was not collected with this agent's `act`.
        """
        steps, count = experience.terminated.shape
        blank = np.zeros((steps, count, self._model.memory.state_size), np.float32)
        return (np.stack(self._before) if len(self._before) == steps else blank,)
