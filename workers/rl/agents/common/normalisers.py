"""The normalisers of an on-policy agent, both optional.

Observations update the statistics before the agent acts on them, from the first step of a training,
as in `VecNormalize` of Stable-Baselines3 and `NormalizeObservation` of Gymnasium. The agent learns
from the normalised observations on which it acted, however many collects a rollout consists of.
Successors are normalised with the statistics at the end of the rollout. Rewards are scaled when the
agent learns from the rollout. Evaluations do not change the statistics.
"""

from collections.abc import Mapping
from typing import Final, Protocol

import numpy as np
from gymnasium import spaces
from torch import Tensor

from workers.core.errors import DefinitionError
from workers.core.types import AgentContext, Array, StateTree
from workers.rl.networks.parameter_layout import Parameters
from workers.rl.networks.running_normaliser import (
    ObservationNormaliser,
    RewardNormaliser,
    normalise,
)

_MEAN: Final = "observation.mean"
_SCALE: Final = "observation.scale"


class NormaliserParameters(Protocol):
    """The hyperparameters that every agent with normalisers has."""

    @property
    def gamma(self) -> float: ...
    @property
    def normalize_observations(self) -> bool: ...
    @property
    def normalize_rewards(self) -> bool: ...


class Normalisers:
    """Optional normalisers of an agent's observations and rewards.

    Args:
        hyper: Whether to normalise observations, whose space must then be a Box of floats, and
            rewards, which are scaled by the returns with discount factor gamma.
        context: Spaces and number of environments.

    Raises:
        DefinitionError: If observations cannot be normalised.
    """

    def __init__(self, hyper: NormaliserParameters, context: AgentContext) -> None:
        space = context.observation_space
        if hyper.normalize_observations and not (
            isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating)
        ):
            raise DefinitionError(
                f"normalize_observations needs a Box observation space of floats, not {space}: "
                "leave it false"
            )
        self._observations = (
            ObservationNormaliser(space.shape or ()) if hyper.normalize_observations else None
        )
        self._rewards = (
            RewardNormaliser(context.num_envs, hyper.gamma) if hyper.normalize_rewards else None
        )

    @property
    def normalises_observations(self) -> bool:
        """Whether observations are normalised."""
        return self._observations is not None

    def normalise(self, observation: Array) -> Array:
        """Returns observations [N, ...] normalised, or unchanged without normaliser.

        Changes no statistics.
        """
        return observation if self._observations is None else self._observations(observation)

    def normalise_step(self, observation: Array, active: Array | None = None) -> Array:
        """Updates the statistics by observations [B, ...] of a training step, and normalises them.

        Args:
            observation: Observations from the environments, [B, ...].
            active: bool [B]: false for inactive slots, whose entries do not update the statistics;
                `None` if all slots are active.
        """
        if self._observations is None:
            return observation
        self._observations.update(observation if active is None else observation[active])
        return self._observations(observation)

    def normalise_rollout(self, rollout: Mapping[str, Array]) -> Mapping[str, Array]:
        """Normalises the successors and rewards of a rollout of arrays [T, B, ...].

        Updates the statistics of rewards. The rollout's observations are not changed:
        `normalise_step` has normalised them before the agent acted.
        """
        changed: dict[str, Array] = {}
        active = rollout["active"]
        if self._rewards is not None:
            self._rewards.update(
                rollout["reward"], rollout["terminated"] | rollout["truncated"], active
            )
            changed["reward"] = self._rewards(rollout["reward"])
        if self._observations is not None:
            changed["next_observation"] = self._observations(rollout["next_observation"])
        return {**rollout, **changed}

    def tensors(self) -> dict[str, Tensor]:
        """Returns mean and scale of observations by name, for an exported policy; may be empty."""
        return (
            {}
            if self._observations is None
            else dict(zip((_MEAN, _SCALE), self._observations.tensors(), strict=True))
        )

    def normalise_tensors(self, parameters: Parameters, observation: Tensor) -> Tensor:
        """Normalises observations [N, ...] by the tensors of `tensors` in `parameters`; pure."""
        if self._observations is None:
            return observation
        return normalise(
            observation, parameters[_MEAN], parameters[_SCALE], self._observations.clip
        )

    def state_dict(self) -> StateTree:
        """Returns the statistics."""
        parts = {"observations": self._observations, "rewards": self._rewards}
        return {name: part.state_dict() for name, part in parts.items() if part is not None}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the statistics from `state`."""
        if self._observations is not None:
            self._observations.load_state_dict(state["observations"])
        if self._rewards is not None:
            self._rewards.load_state_dict(state["rewards"])
