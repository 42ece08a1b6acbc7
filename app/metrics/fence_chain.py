"""The fence chain of a run: its training attempts, and the range in which each one's points count.

An attempt that resumed from a snapshot continues that snapshot's history and supersedes all that
lies beyond it. Only the chain (fence, snapshot resumed from) decides; clocks and the order of
arrival do not matter.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.metrics.column_codec import Ints


@dataclass(frozen=True, slots=True)
class Position:
    """A state of training: (env_step, update), compared in that order."""

    env_step: int
    update: int


@dataclass(frozen=True, slots=True)
class Link:
    """A training attempt: its fence, and the fence and position from which it resumed, if any."""

    fence: int
    resumed_fence: int | None
    resumed_at: Position | None


Chain = Mapping[int, Position | None]
"""Fence -> last position that counts, `None` for no bound.

A fence that is not a key is superseded as a whole.
"""


def build_chain(links: Iterable[Link]) -> Chain:
    """Returns the attempts that lead to the newest fence, each with its last valid position."""
    by_fence = {link.fence: link for link in links}
    current = by_fence.get(max(by_fence, default=0))
    counted: dict[int, Position | None] = {}
    bound: Position | None = None
    while current is not None and current.fence not in counted:
        counted[current.fence] = bound
        bound = _earlier(current.resumed_at, bound)
        current = None if current.resumed_fence is None else by_fence.get(current.resumed_fence)
    return counted


def is_in_history(history: Chain, fence: int, position: Position) -> bool:
    """Returns whether what attempt `fence` wrote at `position` belongs to the run's history."""
    if not history:
        return True
    if fence not in history:
        return False
    bound = history[fence]
    return bound is None or (position.env_step, position.update) <= (bound.env_step, bound.update)


def find_superseded(
    history: Chain, fence: int, env_step: Ints, update: Ints
) -> npt.NDArray[np.bool_]:
    """Returns which points of attempt `fence` do not belong to the run's history."""
    if not history:
        return np.zeros(len(env_step), np.bool_)
    if fence not in history:
        return np.ones(len(env_step), np.bool_)
    bound = history[fence]
    if bound is None:
        return np.zeros(len(env_step), np.bool_)
    at_bound = env_step == bound.env_step
    found: npt.NDArray[np.bool_] = (env_step > bound.env_step) | (
        at_bound & (update > bound.update)
    )
    return found


def _earlier(one: Position | None, other: Position | None) -> Position | None:
    if one is None or other is None:
        return one or other
    return min(one, other, key=lambda position: (position.env_step, position.update))
