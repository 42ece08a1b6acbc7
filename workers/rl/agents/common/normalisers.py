"""The normalisers of an on-policy agent, both optional.

Observations are taken in before they are acted on, from the first step of a training, as by
`VecNormalize` of Stable-Baselines3 and `NormalizeObservation` of Gymnasium. What was acted on is
what is learnt from, whatever pieces a rollout was gathered in; successors that were not acted on,
at cuts and behind a rollout, are seen as at its end. Rewards are brought to unit size as the
rollout is learnt from. An evaluation changes nothing.
"""

from collections.abc import Mapping
from typing import Final

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


class Normalisers:
    """What an agent normalises.

    Args:
        context: Spaces and number of environments.
        gamma: Discount factor of the returns that rewards are scaled by.
        observations: Whether observations are normalised; they have to be a Box of floats.
        rewards: Whether rewards are.

    Raises:
        DefinitionError: If observations cannot be normalised.
    """

    def __init__(
        self, context: AgentContext, gamma: float, *, observations: bool, rewards: bool
    ) -> None:
        space = context.observation_space
        if observations and not (
            isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating)
        ):
            raise DefinitionError(
                f"normalize_observations needs a Box observation space of floats, not {space}: "
                "leave it false"
            )
        self._observations = ObservationNormaliser(space.shape or ()) if observations else None
        self._rewards = RewardNormaliser(context.num_envs, gamma) if rewards else None

    @property
    def observes(self) -> bool:
        """Whether observations are normalised."""
        return self._observations is not None

    def observation(self, observation: Array) -> Array:
        """Returns observations [N, ...] as the network reads them."""
        return observation if self._observations is None else self._observations(observation)

    def met(self, observation: Array, active: Array | None = None) -> Array:
        """Updates the statistics by observations [B, ...] of a training step, and normalises them.

        Args:
            observation: As the environments show them.
            active: bool [B]: false where a slot waits, whose observation is none; `None` for all
                true.
        """
        if self._observations is None:
            return observation
        self._observations.update(observation if active is None else observation[active])
        return self._observations(observation)

    def rollout(self, rollout: Mapping[str, Array]) -> Mapping[str, Array]:
        """Normalises the successors and rewards of a rollout of arrays [T, B, ...].

        Its observations were normalised by `met` when they were acted on.
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
        """Returns what an exported policy needs of the statistics."""
        return (
            {}
            if self._observations is None
            else dict(zip((_MEAN, _SCALE), self._observations.tensors(), strict=True))
        )

    def function(self, parameters: Parameters, observation: Tensor) -> Tensor:
        """Normalises observations [N, ...] by the statistics among the parameters; pure."""
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
        """Brings the statistics to a captured state."""
        if self._observations is not None:
            self._observations.load_state_dict(state["observations"])
        if self._rewards is not None:
            self._rewards.load_state_dict(state["rewards"])
