"""The shell of on-policy agents that remember: a `RolloutAgent` with a recurrent state for each
environment. S numbers of a state.
"""

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from workers.core.types import AgentContext, Array, CollectPlan, Experience, StateTree
from workers.rl.agents.shells.recurrent_state import RecurrentState
from workers.rl.agents.shells.rollout_agent import RolloutAgent, RolloutParts, rollout_fields
from workers.rl.memory.rollout import Rollout


class RecurrentAgent(RolloutAgent):
    """Acts with a recurrent state for each environment.

    Args:
        parts: What it is made of; the model of its algorithm is a
            `workers.rl.agents.recurrent_ppo.RecurrentActorCritic`.
        context: Seed, device and number of environments.
    """

    exportable = False
    """One observation is not enough to act on."""

    def __init__(self, parts: RolloutParts, context: AgentContext) -> None:
        super().__init__(parts, context)
        algorithm: Any = parts.algorithm
        self._model = algorithm.model
        size = self._model.memory.state_size
        self._recurrent = RecurrentState(size, context.num_envs)
        self.memory = Rollout(
            parts.vector_steps,
            context.num_envs,
            {**rollout_fields(self._model), "state": ((size,), np.float32)},
        )
        self._before: list[Array] = []

    @property
    def collect_plan(self) -> CollectPlan:
        """One vector step: where an episode ended must be known before the next action."""
        return CollectPlan(vector_steps=1)

    def act(self, observation: Array, *, explore: bool) -> Array:
        """Returns actions [B, ...].

        Greedy ones count for the recurrent state once `observe_evaluation` says that they were
        carried out.
        """
        before, named, policy = (
            self._recurrent.before(len(observation), explore=explore),
            self.named_parameters(),
            self._model.policy,
        )
        with torch.inference_mode():
            seen = self._tensor(
                self.met(observation) if explore else self.normalisers.observation(observation)
            )
            states = self._model.step(named, seen, self._tensor(before))
            outputs = self._model.heads(named, states)[0]
            noise = self._tensor(self.acting_noise(len(observation))[0]) if explore else None
            raw: Array = policy.sample_tensor(named, outputs, noise).cpu().numpy()
        self._recurrent.after(states.cpu().numpy(), explore=explore)
        if not explore:
            actions: Array = policy.to_space(raw)
            return actions
        self._before.append(before)
        return self.explored(raw)

    def observe(self, experience: Experience) -> None:
        """Copies the transitions into the rollout, and forgets what was remembered where an episode
        ended.
        """
        super().observe(experience)
        self._before.clear()
        if self._training.on:
            self._recurrent.training_ended(experience.terminated[-1] | experience.truncated[-1])

    def episodes_lost(self, lost: npt.NDArray[np.bool_]) -> None:
        """Forgets what was remembered there, too; see `RolloutAgent.episodes_lost`."""
        super().episodes_lost(lost)
        self._recurrent.training_ended(lost)

    def observe_evaluation(
        self,
        observation: Array,
        reward: Array,
        terminated: npt.NDArray[np.bool_],
        reset: npt.NDArray[np.bool_],
    ) -> None:
        """Hears of a step of an evaluation.

        `reset` bool [B] says where the episode is over, or given up.
        """
        del observation, reward, terminated
        self._recurrent.evaluation_stepped(reset)

    def eval_mode(self) -> AbstractContextManager[None]:
        """Returns a context in which nothing is stored and nothing learnt.

        What an earlier evaluation remembered is forgotten.
        """
        self._recurrent.evaluation_begins()
        return super().eval_mode()

    def acting_module(self) -> Any:
        """Raises TypeError: one observation is not enough to act on."""
        raise TypeError(
            "this agent cannot be exported: it acts on all observations of an episode, an exported module on one"
        )

    def state_dict(self) -> StateTree:
        """Returns everything but the memory."""
        return {**super().state_dict(), "recurrent": self._recurrent.state_dict()}

    def load_state_dict(self, state: StateTree) -> None:
        """Brings a freshly built agent of the same definition to a captured state."""
        super().load_state_dict(state)
        self._recurrent.load_state_dict(state["recurrent"])
        self._before.clear()

    def _beside(self, experience: Experience) -> tuple[Array, ...]:
        """The state before each step; zeros for experience of another origin."""
        steps, count = experience.terminated.shape
        blank = np.zeros((steps, count, self._model.memory.state_size), np.float32)
        return (np.stack(self._before) if len(self._before) == steps else blank,)
