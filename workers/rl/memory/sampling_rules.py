"""Rules by which places of a memory are sampled.

A rule gets the indices of rows (places) but not their contents. Shapes: U batches of N samples.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from workers.core.rng import generator_state, load_generator_state
from workers.core.types import Array, StateTree
from workers.rl.memory.sum_tree import SumTree

Places = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float32]


class SamplingRule:
    """Base class of sampling rules; the methods that report changes do nothing here.

    Args:
        generator: Random generator, used by the rule and its memory only.
    """

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator

    def draw(self, size: int, shape: tuple[int, int]) -> tuple[Places, Weights]:
        """Draws places with replacement.

        Args:
            size: Number of filled places, which are [0, size).
            shape: (U, N).

        Returns:
            Places int64 and importance weights float32, both of `shape`.
        """
        raise NotImplementedError

    def reserve(self, capacity: int) -> None:
        """Called once, before all other methods, with the number of places."""

    def mark_written(self, begin: int, end: int) -> None:
        """Called when the places [begin, end) hold new rows."""

    def mark_dropped(self, places: Places) -> None:
        """Called when the rows at `places` must not be sampled until they are written again.

        A rule may still draw these places; the memory then draws again.
        """

    def update_errors(self, places: Places, errors: Array) -> None:
        """Called with the absolute temporal-difference errors of `places`, both [N]."""

    def state_dict(self) -> StateTree:
        """Returns the state, including that of the generator."""
        return {"generator": generator_state(self.generator)}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the rule from `state`."""
        load_generator_state(self.generator, state["generator"])


class UniformRule(SamplingRule):
    """Draws every place with the same probability, independently."""

    def draw(self, size: int, shape: tuple[int, int]) -> tuple[Places, Weights]:
        """Returns places int64 in [0, size) and weights of 1, both of `shape`."""
        # Twice as fast as `integers`, with a bias of size / 2**53; rounding never yields `size`.
        return (self.generator.random(shape) * size).astype(np.int64), equal_weights(shape)


@lru_cache(maxsize=16)
def equal_weights(shape: tuple[int, int]) -> Weights:
    """Returns ones of `shape`; the array is cached and must not be written to."""
    return np.ones(shape, np.float32)


class JointUniformSampler:
    """Draws the places that n separate `UniformRule` rules with these generators would draw.

    Args:
        generators: The generators of the n rules, which must not draw themselves.
    """

    def __init__(self, generators: Sequence[np.random.Generator]) -> None:
        self._generators = generators
        self._numbers = np.empty((len(generators), 0, 0))
        self._fill: list[Callable[[], object]] = []

    def draw(self, size: int, shape: tuple[int, int]) -> Places:
        """Returns places in [0, size), int64 [U, n, N] for a shape of (U, N)."""
        if self._numbers.shape[1:] != shape:
            self._numbers = np.empty((len(self._generators), *shape))
            self._fill = [
                partial(one.random, out=own)
                for one, own in zip(self._generators, self._numbers, strict=True)
            ]
        for fill in self._fill:
            fill()
        return (self._numbers * size).astype(np.int64).swapaxes(0, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Priorities:
    """The constants of prioritized replay.

    Defaults are those of the paper's proportional variant, except for `anneal_updates`.

    Raises:
        ValueError: If a constant is out of its range.
    """

    alpha: float = 0.6
    """Exponent of the priorities, at least 0; 0 samples uniformly."""
    beta: float = 0.4
    """Exponent of the importance weights at the beginning, in [0, 1]; 1 corrects all bias."""
    beta_final: float = 1.0
    """Exponent of the importance weights after `anneal_updates`, in [0, 1]."""
    anneal_updates: int = 100_000
    """Batches over which the exponent changes linearly from `beta` to `beta_final`."""
    epsilon: float = 1e-6
    """Added to each absolute error, so that no row has probability 0; above 0."""

    def __post_init__(self) -> None:
        if not self.alpha >= 0:
            raise ValueError(f"alpha must be at least 0, not {self.alpha}: 0 samples uniformly")
        if not (0 <= self.beta <= 1 and 0 <= self.beta_final <= 1):
            raise ValueError(
                f"beta and beta_final must lie in [0, 1], not at {self.beta} and {self.beta_final}"
            )
        if self.anneal_updates < 1 or not self.epsilon > 0:
            raise ValueError(
                f"anneal_updates and epsilon must be above 0, not {self.anneal_updates} and "
                f"{self.epsilon}"
            )


class PrioritizedRule(SamplingRule):
    """Proportional prioritized replay (Schaul et al. 2016, section 3.3 and algorithm 1).

    P(i) = p_i / sum_j p_j with p_i = (|delta_i| + epsilon)^alpha, equation 1. New rows get the
    highest p that any row ever had, 1 before the first feedback, so that they are likely to be
    sampled soon. A batch is stratified: the sum of all p is divided into N equal ranges and one row
    is drawn from each. Priorities of stored rows change in `update_errors` only, so all batches of
    one call are drawn with the same priorities.

    Args:
        generator: Random generator, used by the rule and its memory only.
        priorities: The constants; `None` takes the defaults.
    """

    def __init__(
        self, generator: np.random.Generator, priorities: Priorities | None = None
    ) -> None:
        super().__init__(generator)
        self._constants = priorities or Priorities()
        self._tree = SumTree(1)
        self._highest = 1.0
        self._drawn = 0

    def reserve(self, capacity: int) -> None:
        """Allocates the priorities, all 0: no place can be drawn before it is written."""
        self._tree = SumTree(capacity)

    @property
    def beta(self) -> float:
        """Exponent of the importance weights of the next batch."""
        return self._beta(self._drawn)

    # `size` is not needed: places that were never written have priority 0.
    def draw(self, size: int, shape: tuple[int, int]) -> tuple[Places, Weights]:  # noqa: ARG002
        """Returns places int64 and weights float32, both of `shape`.

        The weights of a batch are (size * P(i))^-beta over their maximum (section 3.4); size and
        sum of the p cancel out.
        """
        updates, batch = shape
        strata = np.arange(batch) + self.generator.random(shape)
        places = self._tree.find((strata * (self._tree.total / batch)).reshape(-1)).reshape(shape)
        p = self._tree.values[places]
        weights = (p / p.min(1, keepdims=True)) ** [
            [-self._beta(self._drawn + update)] for update in range(updates)
        ]
        self._drawn += updates
        return places, weights.astype(np.float32)

    def mark_written(self, begin: int, end: int) -> None:
        """Gives the places [begin, end) the highest priority."""
        self._tree.fill(begin, end, self._highest)

    def mark_dropped(self, places: Places) -> None:
        """Gives `places` priority 0: they are not drawn until they are written again."""
        self._tree.set(places, 0.0)

    def update_errors(self, places: Places, errors: Array) -> None:
        """Sets the priorities of `places` [N] from their errors [N].

        Errors that are not finite give the highest priority.
        """
        p = (np.abs(errors, dtype=np.float64) + self._constants.epsilon) ** self._constants.alpha
        finite = np.isfinite(p)
        if not finite.all():
            p = np.where(finite, p, self._highest)
        self._highest = max(self._highest, float(p.max(initial=0.0)))
        self._tree.set(places, p)

    def state_dict(self) -> StateTree:
        """Returns the priorities by place, the highest one, the batches drawn and the generator."""
        return {
            **super().state_dict(),
            "priorities": self._tree.values,
            "highest": self._highest,
            "drawn": self._drawn,
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the rule from `state`.

        Raises:
            ValueError: If `state` is of a memory with another number of places, or of another rule.
        """
        if "priorities" not in state:
            raise ValueError(
                "the stored memory was sampled by another rule, it has no priorities: sample by "
                "the same rule"
            )
        values, size = state["priorities"], len(self._tree.values)
        if len(values) != size:
            raise ValueError(
                f"the stored priorities are of {len(values)} places, this memory has {size}: give "
                "it the same capacity"
            )
        self._tree.fill(0, size, values)
        self._highest, self._drawn = float(state["highest"]), int(state["drawn"])
        super().load_state_dict(state)

    def _beta(self, drawn: int) -> float:
        constants = self._constants
        return constants.beta + min(drawn / constants.anneal_updates, 1.0) * (
            constants.beta_final - constants.beta
        )
