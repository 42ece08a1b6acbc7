"""Action distributions of policies, as functions of a network's outputs.

N samples, A outputs of the policy network.

Learning works on tensors. Acting samples in numpy with random numbers that are passed as arguments,
so that these can be drawn for many steps at once.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Final, Protocol

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import Space, spaces
from torch import Tensor
from torch.nn.functional import softplus

from workers.core.types import Array
from workers.rl.agents.common.action_encoding import (
    ActionCodec,
    DiscreteActions,
    unsupported_action_space,
)
from workers.rl.networks.parameter_layout import Parameters

LOG_STD: Final = "policy.log_std"
"""Name of the parameter that holds the logarithm of a GaussianPolicy's standard deviation."""
Floats = npt.NDArray[np.float32]
Arrays = Mapping[str, Array]
_HALF_LOG_TWO_PI: Final = 0.5 * math.log(2 * math.pi)


class Policy(ActionCodec, Protocol):
    """A family of distributions over raw actions."""

    @property
    def outputs(self) -> int:
        """Number of outputs of the policy network per sample, A."""

    @property
    def extra_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes, by name, of parameters besides those of the network; initial values are 0."""

    def noise(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
        """Returns the random numbers [*shape, A] that `sample` takes for samples of `shape`."""

    def sample(self, parameters: Arrays, outputs: Floats, noise: Array | None) -> Array:
        """Returns raw actions [..., N, *raw_shape] of outputs and noise [..., N, A].

        Without noise the most probable actions.
        """

    def sample_tensor(
        self, parameters: Parameters, outputs: Tensor, noise: Tensor | None
    ) -> Tensor:
        """Computes `sample` for tensors [N, A]."""

    def log_probability(self, parameters: Parameters, outputs: Tensor, raw: Tensor) -> Tensor:
        """Returns the logarithm of probability or density float32 [N] of raw actions."""

    def entropy(self, parameters: Parameters, outputs: Tensor) -> Tensor:
        """Returns the entropy of each sample's distribution, float32 [N]."""

    def kl(self, old: tuple[Parameters, Tensor], new: tuple[Parameters, Tensor]) -> Tensor:
        """Returns the Kullback-Leibler divergence KL(old || new) float32 [N].

        Each policy is a pair of its parameters and its outputs.
        """


class LogitPolicy:
    """Base of the policies whose outputs are logits of categorical distributions."""

    extra_shapes: ClassVar[dict[str, tuple[int, ...]]] = {}

    @property
    def outputs(self) -> int:
        """Number of logits of all components, A."""
        raise NotImplementedError

    def log_probabilities(self, outputs: Tensor) -> Tensor:
        """Returns the logarithm of the probability of each action of each component, [N, A]."""
        return outputs.log_softmax(1)

    def noise(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
        """Returns Gumbel noise float64 [*shape, A]: one number per logit."""
        return generator.gumbel(size=(*shape, self.outputs))

    def entropy(self, parameters: Parameters, outputs: Tensor) -> Tensor:
        """Returns the entropy float32 [N], summed over the components."""
        del parameters
        logs = self.log_probabilities(outputs)
        return -(logs.exp() * logs).sum(1)

    def kl(self, old: tuple[Parameters, Tensor], new: tuple[Parameters, Tensor]) -> Tensor:
        """Returns KL(old || new) float32 [N], summed over the components."""
        before, after = self.log_probabilities(old[1]), self.log_probabilities(new[1])
        return (before.exp() * (before - after)).sum(1)


@dataclass(frozen=True, slots=True)
class CategoricalPolicy(LogitPolicy, DiscreteActions):
    """One of n actions; the outputs are logits."""

    @property
    def outputs(self) -> int:
        """Number of logits, A: one per action."""
        return self.count

    def sample(self, parameters: Arrays, outputs: Floats, noise: Array | None) -> Array:
        """Returns raw actions int64 [..., N], by the Gumbel-max trick."""
        del parameters
        raw: Array = (outputs if noise is None else outputs + noise).argmax(-1)
        return raw

    def sample_tensor(
        self, parameters: Parameters, outputs: Tensor, noise: Tensor | None
    ) -> Tensor:
        """Computes `sample` for tensors [N, A]; returns int64 [N]."""
        del parameters
        return (outputs if noise is None else outputs + noise).argmax(-1)

    def log_probability(self, parameters: Parameters, outputs: Tensor, raw: Tensor) -> Tensor:
        """Returns the log-probabilities float32 [N] of raw actions [N]."""
        del parameters
        return outputs.log_softmax(1).gather(1, raw.unsqueeze(1)).squeeze(1)


@dataclass(frozen=True, slots=True)
class MultiCategoricalPolicy(LogitPolicy):
    """Independent categorical components; the outputs are their logits one after the other.

    K components.
    """

    space: spaces.MultiDiscrete
    counts: tuple[int, ...]
    raw_dtype: ClassVar[type[np.generic]] = np.int64

    @property
    def outputs(self) -> int:
        """Number of logits of all components, A."""
        return sum(self.counts)

    @property
    def raw_shape(self) -> tuple[int, ...]:
        """Shape of one raw action, which is flattened to a vector."""
        return (len(self.counts),)

    def sample(self, parameters: Arrays, outputs: Floats, noise: Array | None) -> Array:
        """Returns raw actions int64 [..., N, K], by the Gumbel-max trick in each component."""
        del parameters
        scores, ends = (
            outputs if noise is None else outputs + noise,
            np.cumsum((0, *self.counts)).tolist(),
        )
        return np.stack([scores[..., begin:end].argmax(-1) for begin, end in pairwise(ends)], -1)

    def sample_tensor(
        self, parameters: Parameters, outputs: Tensor, noise: Tensor | None
    ) -> Tensor:
        """Computes `sample` for tensors [N, A]; returns int64 [N, K]."""
        del parameters
        scores = outputs if noise is None else outputs + noise
        return torch.stack(
            [part.argmax(-1) for part in torch.split(scores, list(self.counts), -1)], -1
        )

    def log_probability(self, parameters: Parameters, outputs: Tensor, raw: Tensor) -> Tensor:
        """Returns log-probabilities float32 [N]: sums over the components."""
        del parameters
        parts = zip(torch.split(outputs, list(self.counts), 1), torch.split(raw, 1, 1), strict=True)
        return torch.cat(
            [logits.log_softmax(1).gather(1, column) for logits, column in parts], 1
        ).sum(1)

    def to_space(self, raw: Array) -> Array:
        """Returns the actions [N, *shape] of the space for raw actions [N, K]."""
        space = self.space
        return raw.reshape(-1, *space.shape).astype(space.dtype) + space.start

    def tensor_to_space(self, raw: Tensor) -> Tensor:
        """Computes `to_space` for tensors."""
        start = torch.as_tensor(self.space.start, device=raw.device)
        return raw.view(-1, *self.space.shape).to(start.dtype) + start

    def from_space(self, action: Array) -> Array:
        """Returns the raw actions int64 [N, K] of actions [N, *shape] of the space."""
        return (action - self.space.start).reshape(-1, len(self.counts)).astype(np.int64)

    def log_probabilities(self, outputs: Tensor) -> Tensor:
        """Returns the logarithm of the probability of each action of each component, [N, A]."""
        return torch.cat(
            [part.log_softmax(1) for part in torch.split(outputs, list(self.counts), 1)], 1
        )


@dataclass(frozen=True, slots=True)
class BernoulliPolicy:
    """Independent bits; the outputs are the logits of ones."""

    space: spaces.MultiBinary
    raw_dtype: ClassVar[type[np.generic]] = np.float32
    extra_shapes: ClassVar[dict[str, tuple[int, ...]]] = {}

    @property
    def outputs(self) -> int:
        """Number of bits of one action, A."""
        return math.prod(self.space.shape)

    @property
    def raw_shape(self) -> tuple[int, ...]:
        """Shape of one raw action, which is flattened to a vector."""
        return (self.outputs,)

    def noise(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
        """Returns logistic noise float64 [*shape, A]."""
        return generator.logistic(size=(*shape, self.outputs))

    def sample(self, parameters: Arrays, outputs: Floats, noise: Array | None) -> Array:
        """Returns zeros and ones float32 [..., N, A].

        A bit is 1 where logit plus logistic noise is above 0.
        """
        del parameters
        return ((outputs if noise is None else outputs + noise) > 0).astype(np.float32)

    def sample_tensor(
        self, parameters: Parameters, outputs: Tensor, noise: Tensor | None
    ) -> Tensor:
        """Computes `sample` for tensors [N, A]."""
        del parameters
        return ((outputs if noise is None else outputs + noise) > 0).float()

    def log_probability(self, parameters: Parameters, outputs: Tensor, raw: Tensor) -> Tensor:
        """Returns log-probabilities float32 [N]: sums over the bits."""
        del parameters
        return (raw * outputs - softplus(outputs)).sum(1)

    def entropy(self, parameters: Parameters, outputs: Tensor) -> Tensor:
        """Returns the entropy float32 [N], summed over the bits."""
        del parameters
        return (softplus(outputs) - outputs.sigmoid() * outputs).sum(1)

    def kl(self, old: tuple[Parameters, Tensor], new: tuple[Parameters, Tensor]) -> Tensor:
        """Returns KL(old || new) float32 [N], summed over the bits."""
        before, after = old[1], new[1]
        return (before.sigmoid() * (before - after) - softplus(before) + softplus(after)).sum(1)

    def to_space(self, raw: Array) -> Array:
        """Returns the actions int8 [N, *shape] of the space for raw actions [N, A]."""
        return raw.astype(np.int8).reshape(-1, *self.space.shape)

    def tensor_to_space(self, raw: Tensor) -> Tensor:
        """Computes `to_space` for tensors."""
        return raw.to(torch.int8).view(-1, *self.space.shape)

    def from_space(self, action: Array) -> Array:
        """Returns the raw actions float32 [N, A] of actions [N, *shape] of the space."""
        return action.reshape(-1, self.outputs).astype(np.float32)


@dataclass(frozen=True, slots=True)
class GaussianPolicy:
    """Independent normal distributions.

    The outputs are means, the standard deviations are parameters of their own.

    Raw actions are unbounded. If the space has finite bounds, raw -1 is the lower and raw 1 the
    upper bound. Actions outside the bounds are clipped for the environment only; the learner stores
    the raw action, because log-probabilities are those of raw actions.
    """

    space: spaces.Box
    low: Array
    high: Array
    centre: Array
    half: Array
    raw_dtype: ClassVar[type[np.generic]] = np.float32

    @property
    def outputs(self) -> int:
        """Number of entries of one action, A."""
        return int(self.low.size)

    @property
    def extra_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of the logarithms of the standard deviations, by parameter name."""
        return {LOG_STD: (self.outputs,)}

    @property
    def raw_shape(self) -> tuple[int, ...]:
        """Shape of one raw action, which is flattened to a vector."""
        return (self.outputs,)

    def noise(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
        """Returns standard normal noise float32 [*shape, A]."""
        return generator.standard_normal((*shape, self.outputs), dtype=np.float32)

    def sample(self, parameters: Arrays, outputs: Floats, noise: Array | None) -> Array:
        """Returns raw actions float32 [..., N, A]: means plus scaled noise."""
        if noise is None:
            return outputs
        raw: Array = outputs + np.exp(parameters[LOG_STD])[..., None, :] * noise
        return raw

    def sample_tensor(
        self, parameters: Parameters, outputs: Tensor, noise: Tensor | None
    ) -> Tensor:
        """Computes `sample` for tensors [N, A]."""
        return outputs if noise is None else outputs + parameters[LOG_STD].exp() * noise

    def log_probability(self, parameters: Parameters, outputs: Tensor, raw: Tensor) -> Tensor:
        """Returns the logarithms of the densities of raw actions, float32 [N]."""
        log_std = parameters[LOG_STD]
        z = (raw - outputs) * (-log_std).exp()
        return -(0.5 * z.square() + log_std + _HALF_LOG_TWO_PI).sum(1)

    def entropy(self, parameters: Parameters, outputs: Tensor) -> Tensor:
        """Returns the differential entropy float32 [N], summed over the entries."""
        return (parameters[LOG_STD] + 0.5 + _HALF_LOG_TWO_PI).sum().expand(outputs.shape[0])

    def kl(self, old: tuple[Parameters, Tensor], new: tuple[Parameters, Tensor]) -> Tensor:
        """Returns KL(old || new) float32 [N], summed over the entries."""
        before, after = old[0][LOG_STD], new[0][LOG_STD]
        ratio = (2 * (before - after)).exp()
        distance = ((old[1] - new[1]) * (-after).exp()).square()
        return (after - before + 0.5 * (ratio + distance - 1)).sum(1)

    def to_space(self, raw: Array) -> Array:
        """Returns the actions [N, *shape] of the space, clipped to its bounds."""
        actions: Array = np.clip(self.centre + self.half * raw, self.low, self.high).astype(
            self.space.dtype
        )
        return actions.reshape(-1, *self.space.shape)

    def tensor_to_space(self, raw: Tensor) -> Tensor:
        """Computes `to_space` for tensors."""
        tensors = (
            torch.as_tensor(array, device=raw.device)
            for array in (self.centre, self.half, self.low, self.high)
        )
        centre, half, low, high = tensors
        actions = torch.minimum(torch.maximum(centre + half * raw, low), high)
        return actions.view(-1, *self.space.shape).to(_torch_dtype(self.space.dtype))

    def from_space(self, action: Array) -> Array:
        """Returns the raw actions float32 [N, A] of actions [N, *shape] of the space."""
        return ((action.reshape(-1, self.outputs) - self.centre) / self.half).astype(np.float32)


def make_policy(space: Space[object], agent: str = "ppo") -> Policy:
    """Returns the policy of an action space.

    Raises:
        DefinitionError: If no policy supports the space; the message names the agent.
    """
    match space:
        case spaces.Discrete():
            return CategoricalPolicy(int(space.n), int(space.start))
        case spaces.MultiDiscrete():
            return MultiCategoricalPolicy(space, tuple(space.nvec.reshape(-1).tolist()))
        case spaces.MultiBinary():
            return BernoulliPolicy(space)
        case spaces.Box() if np.issubdtype(space.dtype, np.floating):
            low, high = (bound.reshape(-1).astype(np.float32) for bound in (space.low, space.high))
            bounded = np.isfinite(low) & np.isfinite(high) & (high > low)
            below, above = np.where(bounded, low, -1.0), np.where(bounded, high, 1.0)
            centre, half = (
                (below / 2 + above / 2).astype(np.float32),
                (above / 2 - below / 2).astype(np.float32),
            )
            return GaussianPolicy(space, low, high, centre, half)
    raise unsupported_action_space(
        space, agent, "a Discrete, MultiDiscrete, MultiBinary or a floating Box"
    )


def _torch_dtype(dtype: object) -> torch.dtype:
    return torch.from_numpy(np.zeros(0, dtype)).dtype
