"""Conversion between raw actions, of networks and memories, and actions of a space. N actions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol, TypeGuard

import numpy as np
import torch
from gymnasium import Space, spaces
from torch import Tensor

from palestra.contract.agents.actions import ActionKind, list_supporting_agents
from workers.core.errors import DefinitionError
from workers.core.types import Array

_KINDS: Final[Mapping[ActionKind, type[Space[object]]]] = {
    "discrete": spaces.Discrete,
    "box": spaces.Box,
    "multi_discrete": spaces.MultiDiscrete,
    "multi_binary": spaces.MultiBinary,
}


class ActionCodec(Protocol):
    """Converts raw actions, which networks and memories use, to actions of a space and back."""

    @property
    def raw_shape(self) -> tuple[int, ...]:
        """Shape of one raw action, without the dimension of the batch."""

    @property
    def raw_dtype(self) -> type[np.generic]:
        """Dtype of raw actions, int64 or float32."""

    def to_space(self, raw: Array) -> Array:
        """Returns actions of the space, within its bounds."""

    def tensor_to_space(self, raw: Tensor) -> Tensor:
        """Computes `to_space` for tensors."""

    def from_space(self, action: Array) -> Array:
        """Returns the raw actions [N, ...] of actions of the space: the inverse of `to_space`."""


class Actions(ActionCodec, Protocol):
    """An `ActionCodec` that can draw random actions."""

    def draw_random(self, generator: np.random.Generator, count: int) -> Array:
        """Returns raw actions [count, ...], drawn uniformly."""


@dataclass(frozen=True, slots=True)
class DiscreteActions:
    """Actions of a discrete space with `count` actions; raw actions are counted from 0."""

    count: int
    first: int
    """Smallest action of the space."""
    raw_shape: ClassVar[tuple[int, ...]] = ()
    raw_dtype: ClassVar[type[np.generic]] = np.int64

    def draw_random(self, generator: np.random.Generator, count: int) -> Array:
        """Returns raw actions int64 [count], drawn uniformly."""
        return generator.integers(self.count, size=count)

    def to_space(self, raw: Array) -> Array:
        """Returns the actions of the space, int64 [N], for raw actions [N]."""
        return raw + self.first if self.first else raw

    def tensor_to_space(self, raw: Tensor) -> Tensor:
        """Computes `to_space` for tensors."""
        return raw + self.first

    def from_space(self, action: Array) -> Array:
        """Returns the raw actions int64 [N] of actions of the space, [N]."""
        return action - self.first if self.first else action


@dataclass(frozen=True, slots=True)
class BoxActions:
    """Actions of a box with finite bounds; raw actions are in [-1, 1] in each dimension."""

    space: spaces.Box
    centre: Array
    half: Array
    raw_dtype: ClassVar[type[np.generic]] = np.float32

    @property
    def raw_shape(self) -> tuple[int, ...]:
        """Shape of a raw action, [A]: the action is flattened."""
        return (int(self.centre.size),)

    def draw_random(self, generator: np.random.Generator, count: int) -> Array:
        """Returns raw actions float32 [count, A], drawn uniformly."""
        return generator.random((count, self.centre.size), dtype=np.float32) * 2 - 1

    def to_space(self, raw: Array) -> Array:
        """Returns the actions [N, *shape] of the space for raw actions [N, A]."""
        space = self.space
        actions: Array = (
            (self.centre + self.half * raw.clip(-1, 1))
            .astype(space.dtype)
            .reshape(-1, *space.shape)
        )
        return np.clip(actions, space.low, space.high)

    def tensor_to_space(self, raw: Tensor) -> Tensor:
        """Computes `to_space` for tensors."""
        space = self.space
        centre, half = (
            torch.as_tensor(array, device=raw.device) for array in (self.centre, self.half)
        )
        low, high = (torch.as_tensor(array, device=raw.device) for array in (space.low, space.high))
        actions = (centre + half * raw.clamp(-1, 1)).to(low.dtype).view(-1, *space.shape)
        return torch.minimum(torch.maximum(actions, low), high)

    def from_space(self, action: Array) -> Array:
        """Returns the raw actions float32 [N, A] of actions of the space, [N, *shape]."""
        flat = action.reshape(len(action), self.centre.size)
        return ((flat - self.centre) / self.half).astype(np.float32)


def discrete_actions(space: Space[object], agent: str) -> DiscreteActions:
    """Returns the conversion of actions of a discrete space.

    Args:
        space: Action space of the environment.
        agent: Name of the agent, for the message.

    Raises:
        DefinitionError: If the space is not discrete; the message names agents for the space.
    """
    if not isinstance(space, spaces.Discrete):
        raise DefinitionError(
            f"agent.name: {agent} needs a Discrete action space, not {space}: {_remedy(space)}"
        )
    return DiscreteActions(int(space.n), int(space.start))


def box_actions(space: Space[object], agent: str) -> BoxActions:
    """Returns the conversion of actions of a bounded box of floats.

    Args:
        space: Action space of the environment.
        agent: Name of the agent, for the message.

    Raises:
        DefinitionError: If the space is not a Box of floats, or if bounds are infinite or equal.
    """
    if not _is_floating(space):
        raise DefinitionError(
            f"agent.name: {agent} needs a Box action space of floats, not {space}: {_remedy(space)}"
        )
    low, high = space.low.reshape(-1).astype(np.float32), space.high.reshape(-1).astype(np.float32)
    if not (high > low).all():
        raise DefinitionError(
            f"agent.name: {agent} needs bounds that differ on every action, not {space}: leave "
            "that action out"
        )
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise DefinitionError(
            f"agent.name: {agent} needs finite bounds on every action, not {space}: "
            f"{_remedy(space, is_bounded=False)}"
        )
    return BoxActions(space, (low / 2 + high / 2), (high / 2 - low / 2))


def unsupported_action_space(space: Space[object], agent: str, supported: str) -> DefinitionError:
    """Returns the error for an action space that an agent does not support.

    Args:
        space: Action space of the environment.
        agent: Name of the agent.
        supported: Kinds of action spaces that the agent supports, as text for the message.
    """
    return DefinitionError(
        f"agent.name: {agent} needs {supported} action space, not {space}: {_remedy(space)}"
    )


def _is_floating(space: Space[object]) -> TypeGuard[spaces.Box]:
    return isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating)


def _remedy(space: Space[object], *, is_bounded: bool = True) -> str:
    """Returns advice for a space that an agent does not support, as text for the message.

    The agents that it names are those that declare to support the space.
    """
    kind = next((kind for kind, known in _KINDS.items() if isinstance(space, known)), None)
    if kind is None:
        return (
            f"no built-in agent takes {type(space).__name__} actions, let the environment declare "
            "a Box or a MultiDiscrete"
        )
    if kind == "box" and not _is_floating(space):
        return (
            "no built-in agent takes a Box of whole numbers, let the environment declare a "
            "MultiDiscrete"
        )
    names, bounds = (
        ", ".join(list_supporting_agents(kind, bounded=is_bounded)),
        "" if is_bounded else " without bounds",
    )
    return f"choose one of {names}, which take {type(space).__name__} actions{bounds}"
