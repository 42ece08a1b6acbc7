"""Adam, RMSprop and gradient clipping as pure functions of one flat vector of P parameters.

Adam: Kingma & Ba 2015. RMSprop: Tieleman & Hinton 2012, lecture 6.5.
"""

import math
from typing import Final, NamedTuple

import torch
from torch import Tensor

BETA_1: Final = 0.9
BETA_2: Final = 0.999
_LOG_BETA_1: Final = math.log(BETA_1)
_LOG_BETA_2: Final = math.log(BETA_2)


class AdamState(NamedTuple):
    """State of Adam for one vector of parameters.

    All fields are tensors, so that an update is compiled once for all learning rates, and states
    can be stacked for `vmap`.
    """

    first: Tensor
    """float32 [P]: running mean of the gradient."""
    second: Tensor
    """float32 [P]: running mean of the gradient's square."""
    step: Tensor
    """int64 []: number of updates so far."""
    learning_rate: Tensor
    """float32 []."""


def adam_start(parameters: Tensor, learning_rate: float) -> AdamState:
    """Returns the state before the first update of `parameters` [P]."""
    device = parameters.device
    return AdamState(
        first=torch.zeros_like(parameters),
        second=torch.zeros_like(parameters),
        step=torch.zeros((), dtype=torch.int64, device=device),
        learning_rate=torch.tensor(learning_rate, device=device),
    )


def adam(
    parameters: Tensor, gradient: Tensor, state: AdamState, *, epsilon: float = 1e-8
) -> tuple[Tensor, AdamState]:
    """Returns the parameters and the state after one update.

    Computes the same as `torch.optim.Adam` with its default betas.

    Args:
        parameters: float32 [P].
        gradient: float32 [P].
        state: State after the previous update.
        epsilon: Added to the root of the second moment.
    """
    step = state.step + 1
    first = torch.lerp(state.first, gradient, 1 - BETA_1)
    second = torch.addcmul(state.second * BETA_2, gradient, gradient, value=1 - BETA_2)
    # 1 - beta^t in float64: in float32, 1 - 0.999^t loses four digits for small t. Only two numbers
    # are computed from the step, by `exp`, because compiled code would compute expressions of the
    # step again for each parameter.
    exact = step.double()
    rate = state.learning_rate / (1 - (exact * _LOG_BETA_1).exp()).to(parameters.dtype)
    scale = (1 - (exact * _LOG_BETA_2).exp()).rsqrt().to(parameters.dtype)
    return parameters - rate * first / (second.sqrt() * scale + epsilon), AdamState(
        first, second, step, state.learning_rate
    )


class RmspropState(NamedTuple):
    """State of RMSprop for one vector of parameters."""

    square: Tensor
    """float32 [P]: running mean of the gradient's square."""
    learning_rate: Tensor
    """float32 []."""


def rmsprop_start(
    parameters: Tensor, learning_rate: float, *, uses_inner_epsilon: bool = False
) -> RmspropState:
    """Returns the state before the first update.

    Args:
        parameters: float32 [P].
        learning_rate: Step size.
        uses_inner_epsilon: Whether the running mean begins with 1, as in TensorFlow, not with 0.
    """
    square = torch.ones_like(parameters) if uses_inner_epsilon else torch.zeros_like(parameters)
    return RmspropState(square, torch.tensor(learning_rate, device=parameters.device))


def rmsprop(
    parameters: Tensor,
    gradient: Tensor,
    state: RmspropState,
    *,
    decay: float = 0.99,
    epsilon: float = 1e-8,
    uses_inner_epsilon: bool = False,
) -> tuple[Tensor, RmspropState]:
    """Returns the parameters and the state after one update.

    Computes the same as `torch.optim.RMSprop`, or with `uses_inner_epsilon` as TensorFlow's
    RMSprop.

    Args:
        parameters: float32 [P].
        gradient: float32 [P].
        state: State after the previous update.
        decay: Decay factor of the running mean.
        epsilon: Added to the root of the running mean.
        uses_inner_epsilon: Whether epsilon is added under the root, as in TensorFlow, not to it.
    """
    square = torch.addcmul(state.square * decay, gradient, gradient, value=1 - decay)
    root = (square + epsilon).sqrt() if uses_inner_epsilon else square.sqrt() + epsilon
    return parameters - state.learning_rate * gradient / root, state._replace(square=square)


def clip_to_norm(gradient: Tensor, max_norm: float | None) -> tuple[Tensor, Tensor]:
    """Returns the gradient [P] scaled down to at most `max_norm`, and its norm [] before that."""
    norm = torch.linalg.vector_norm(gradient)
    if max_norm is None:
        return gradient, norm
    return gradient * (max_norm / (norm + 1e-6)).clamp(max=1.0), norm
