"""Advantages and returns of rollouts, in numpy: T vector steps, B environments."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]


def discounted_sums(terms: Floats, ended: Flags, decay: float) -> Floats:
    """Returns the sums float32 [T, B] over k of decay^k * terms[t + k] up to the end of the
    episode.

    With temporal-difference errors and gamma * lambda these are generalised advantages (Schulman et
    al. 2016, equation 16); with rewards and gamma they are returns to go.

    Args:
        terms: float32 [T, B].
        ended: bool [T, B]: the episode ended with this step, or the slot waited.
        decay: Factor per step.
    """
    carried = decay * (~ended).astype(np.float32)
    result = np.empty_like(terms)
    running = np.zeros_like(terms[0])
    for t in range(len(terms) - 1, -1, -1):
        running = carried[t] * running + terms[t]
        result[t] = running
    return result


def of_ended_episodes(ended: Flags) -> Flags:
    """Returns bool [T, B]: the step belongs to an episode that ends within the rollout, with it or
    behind it; `ended` is bool [T, B].
    """
    behind: Flags = np.logical_or.accumulate(ended[::-1], axis=0)[::-1]
    return behind


class Ends(NamedTuple):
    """Where the episodes of a rollout end."""

    ended: Flags
    """bool [T, B]: no reward behind this step belongs to it."""
    terminated: Flags
    """bool [T, B]: the successor is worth 0."""
    foreign: Flags
    """bool [T, B]: the next row does not show the successor, though that has a value: at cuts, and
    behind the last step.
    """
    active: Flags
    """bool [T, B]: false where a slot waited."""


def ends_of(terminated: Flags, truncated: Flags, active: Flags) -> Ends:
    """Returns where the episodes of a rollout end; all arguments are bool [T, B]."""
    foreign = truncated.copy()
    foreign[-1] = True
    foreign[:-1] |= ~active[1:]
    return Ends(terminated | truncated | ~active, terminated & active, foreign, active)


def generalised(
    reward: Floats, value: Floats, foreign_value: Floats, ends: Ends, decays: tuple[float, float]
) -> Floats:
    """Returns generalised advantages float32 [T, B] (Schulman et al. 2016, equations 9 and 16).

    0 where a slot waited.

    With lambda = 1 they are the n-step advantages of Mnih et al. 2016: all rewards up to the end of
    the rollout and the value behind it.

    Args:
        reward: float32 [T, B].
        value: V of each observation, float32 [T, B].
        foreign_value: V of the successors where `ends.foreign` is true, in its order.
        ends: Of the episodes.
        decays: gamma and lambda.
    """
    gamma, trace = decays
    successor = np.roll(value, -1, 0)
    successor[ends.foreign] = foreign_value
    successor[ends.terminated] = 0.0
    delta = (reward + np.float32(gamma) * successor - value) * ends.active
    return discounted_sums(delta, ends.ended, gamma * trace)
