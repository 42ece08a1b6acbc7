"""Action distributions of policies, as functions of a network's outputs. N samples, A outputs of the policy network."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

import numpy as np
import torch
from gymnasium import Space, spaces
from torch import Tensor

from workers.core.errors import DefinitionError
from workers.core.types import Array
from workers.networks.layout import Parameters

LOG_STD: Final = "policy.log_std"
"""Name of the parameter that holds the logarithm of a Gaussian's standard deviation."""
_HALF_LOG_TWO_PI: Final = 0.5 * math.log(2 * math.pi)


class Policy(Protocol):
    """A family of distributions over raw actions, and how raw actions become actions of the space."""

    @property
    def outputs(self) -> int:
        """A: what the policy network puts out per sample."""
        ...

    @property
    def extra_shapes(self) -> dict[str, tuple[int, ...]]:
        """Parameters beside those of the network; they begin at 0."""
        ...

    @property
    def raw_shape(self) -> tuple[int, ...]:
        """Shape of one raw action."""
        ...

    @property
    def raw_dtype(self) -> type[np.generic]:
        """Dtype of raw actions."""
        ...

    def sample(self, parameters: Parameters, outputs: Tensor, generator: np.random.Generator) -> Array:
        """Draws raw actions [N, *raw_shape]."""
        ...

    def mode(self, outputs: Tensor) -> Tensor:
        """Returns the likeliest actions of the space [N, ...]."""
        ...

    def log_probability(self, parameters: Parameters, outputs: Tensor, raw: Tensor) -> Tensor:
        """Returns the logarithm of probability or density float32 [N] of raw actions."""
        ...

    def entropy(self, parameters: Parameters, outputs: Tensor) -> Tensor:
        """Returns float32 [N]."""
        ...

    def to_space(self, raw: Array) -> Array:
        """Returns actions of the space, within its bounds."""
        ...

    def from_space(self, action: Array) -> Array:
        """Returns the raw actions that stand for actions of the space."""
        ...


@dataclass(frozen=True, slots=True)
class Categorical:
    """One of n actions; the outputs are logits."""

    outputs: int
    first: int
    """Smallest action of the space; raw actions count from 0."""
    extra_shapes: ClassVar[dict[str, tuple[int, ...]]] = {}
    raw_shape: ClassVar[tuple[int, ...]] = ()
    raw_dtype: ClassVar[type[np.generic]] = np.int64

    def sample(self, parameters: Parameters, outputs: Tensor, generator: np.random.Generator) -> Array:
        """Draws by the Gumbel-max trick: one random number per logit, whatever the logits are."""
        del parameters
        logits: Array = outputs.cpu().numpy()
        raw: Array = np.argmax(logits + generator.gumbel(size=logits.shape), axis=1)
        return raw

    def mode(self, outputs: Tensor) -> Tensor:
        """Returns actions int64 [N]."""
        return outputs.argmax(1) + self.first

    def log_probability(self, parameters: Parameters, outputs: Tensor, raw: Tensor) -> Tensor:
        """Returns float32 [N]."""
        del parameters
        return outputs.log_softmax(1).gather(1, raw.unsqueeze(1)).squeeze(1)

    def entropy(self, parameters: Parameters, outputs: Tensor) -> Tensor:
        """Returns float32 [N]."""
        del parameters
        logs = outputs.log_softmax(1)
        return -(logs.exp() * logs).sum(1)

    def to_space(self, raw: Array) -> Array:
        """Returns int64 [N]."""
        return raw + self.first if self.first else raw

    def from_space(self, action: Array) -> Array:
        """Returns int64 [N]."""
        return action - self.first if self.first else action


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Independent normal distributions; the outputs are means, the standard deviations are parameters of their own.

    Raw actions are unbounded. Between finite bounds a raw -1 stands for the lower one and a raw 1 for the upper one; what lies outside is
    clipped on its way to the environment, while the learner keeps the raw action, whose density is the right one.
    """

    space: spaces.Box
    low: Array
    high: Array
    centre: Array
    half: Array
    raw_dtype: ClassVar[type[np.generic]] = np.float32

    @property
    def outputs(self) -> int:
        """Numbers in one action."""
        return int(self.low.size)

    @property
    def extra_shapes(self) -> dict[str, tuple[int, ...]]:
        """The logarithms of the standard deviations."""
        return {LOG_STD: (self.outputs,)}

    @property
    def raw_shape(self) -> tuple[int, ...]:
        """Flat."""
        return (self.outputs,)

    def sample(self, parameters: Parameters, outputs: Tensor, generator: np.random.Generator) -> Array:
        """Draws float32 [N, A]."""
        mean: Array = outputs.cpu().numpy()
        deviation: Array = parameters[LOG_STD].exp().cpu().numpy()
        return mean + deviation * generator.standard_normal(mean.shape, dtype=np.float32)

    def mode(self, outputs: Tensor) -> Tensor:
        """Returns actions [N, *shape] of the space's dtype."""
        tensors = (torch.as_tensor(array, device=outputs.device) for array in (self.centre, self.half, self.low, self.high))
        centre, half, low, high = tensors
        actions = torch.minimum(torch.maximum(centre + half * outputs, low), high)
        return actions.view(-1, *self.space.shape).to(_torch_dtype(self.space.dtype))

    def log_probability(self, parameters: Parameters, outputs: Tensor, raw: Tensor) -> Tensor:
        """Returns float32 [N]."""
        log_std = parameters[LOG_STD]
        z = (raw - outputs) * (-log_std).exp()
        return -(0.5 * z.square() + log_std + _HALF_LOG_TWO_PI).sum(1)

    def entropy(self, parameters: Parameters, outputs: Tensor) -> Tensor:
        """Returns float32 [N]."""
        return (parameters[LOG_STD] + 0.5 + _HALF_LOG_TWO_PI).sum().expand(outputs.shape[0])

    def to_space(self, raw: Array) -> Array:
        """Returns [N, *shape] of the space's dtype, clipped to its bounds."""
        actions: Array = np.clip(self.centre + self.half * raw, self.low, self.high).astype(self.space.dtype)
        return actions.reshape(-1, *self.space.shape)

    def from_space(self, action: Array) -> Array:
        """Returns float32 [N, A]."""
        return ((action.reshape(-1, self.outputs) - self.centre) / self.half).astype(np.float32)


def policy_for(space: Space[Any]) -> Policy:
    """Returns the policy of an action space.

    Raises:
        DefinitionError: If there is none.
    """
    match space:
        case spaces.Discrete():
            return Categorical(outputs=int(space.n), first=int(space.start))
        case spaces.Box() if np.issubdtype(space.dtype, np.floating):
            low, high = (bound.reshape(-1).astype(np.float32) for bound in (space.low, space.high))
            bounded = np.isfinite(low) & np.isfinite(high) & (high > low)
            below, above = np.where(bounded, low, -1.0), np.where(bounded, high, 1.0)
            centre, half = (below / 2 + above / 2).astype(np.float32), (above / 2 - below / 2).astype(np.float32)
            return Gaussian(space, low, high, centre, half)
    raise DefinitionError(f"agent ppo needs a Discrete or a floating Box action space, not {space}")


def _torch_dtype(dtype: Any) -> torch.dtype:
    return torch.from_numpy(np.zeros(0, dtype)).dtype
