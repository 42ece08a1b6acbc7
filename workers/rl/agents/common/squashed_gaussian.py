"""A normal distribution whose samples are mapped to (-1, 1) by tanh.

Haarnoja et al. 2018, "Soft Actor-Critic Algorithms and Applications", appendix C.

N samples, A entries of an action. Densities are computed from the number before tanh, because they
would lose precision where tanh is close to -1 or 1.
"""

import math
from typing import Final

import numpy as np
from torch import Tensor
from torch.nn.functional import softplus

from workers.core.types import Array

LOG_STD_MIN: Final = -20.0
LOG_STD_MAX: Final = 2.0
_HALF_LOG_TWO_PI: Final = 0.5 * math.log(2 * math.pi)
_LOG_2: Final = math.log(2)
_LOW, _HIGH = np.float32(LOG_STD_MIN), np.float32(LOG_STD_MAX)


def mode(outputs: Tensor) -> Tensor:
    """Returns tanh of the mean, float32 [N, A].

    Args:
        outputs: float32 [N, 2A]: means, then logarithms of the standard deviations.
    """
    return outputs.chunk(2, -1)[0].tanh()


def sample(outputs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Returns actions float32 [N, A] and the logarithms of their densities [N].

    Args:
        outputs: float32 [N, 2A].
        noise: Standard normal numbers float32 [N, A].
    """
    mean, log_std = outputs.chunk(2, -1)
    log_std = log_std.clamp(LOG_STD_MIN, LOG_STD_MAX)
    raw = mean + log_std.exp() * noise
    return raw.tanh(), log_density(raw, noise, log_std)


def log_density(raw: Tensor, noise: Tensor, log_std: Tensor) -> Tensor:
    """Returns log pi(tanh(raw)) float32 [N], the sum over the A entries of an action.

    log(1 - tanh(u)^2) = 2 (log 2 - u - softplus(-2u)), which stays finite for every u.
    """
    normal = -0.5 * noise.square() - log_std - _HALF_LOG_TWO_PI
    return (normal - 2 * (_LOG_2 - raw - softplus(-2 * raw))).sum(-1)


def act_arrays(outputs: Array, noise: Array | None) -> Array:
    """Computes the actions of `sample`, or without noise those of `mode`, in numpy.

    Args:
        outputs: float32 [..., 2A].
        noise: Standard normal numbers float32 [..., A].

    Returns:
        float32 [..., A].
    """
    size = outputs.shape[-1] // 2
    raw = outputs[..., :size]
    if noise is not None:
        raw = raw + np.exp(np.minimum(np.maximum(outputs[..., size:], _LOW), _HIGH)) * noise
    actions: Array = np.tanh(raw)
    return actions
