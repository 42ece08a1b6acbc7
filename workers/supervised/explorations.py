"""Explorations for model functions, with rates that depend on the global_timestep.

A discrete action is replaced by a random action with the probability `rate`; to a continuous action
noise is added. No random numbers are drawn while an agent does not explore. A model function uses
an exploration through `workers.supervised.variables.explore`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from workers.core.rng import derive_generator, generator_state, load_generator_state
from workers.core.types import Array, StateTree
from workers.supervised.rate_decays import Decay


class Exploration:
    """Explores with a rate that depends on the timestep alone.

    Args:
        rate: Maps a global_timestep to the rate.
    """

    def __init__(self, rate: Callable[[int], float]) -> None:
        self._rate = rate
        self.generator = derive_generator(0, "explore")
        """Random generator, used by this exploration only; `seed` replaces it."""

    def seed(self, seed: int) -> None:
        """Replaces the generator by one derived from `seed`."""
        self.generator = derive_generator(seed, "explore")

    def rate(self, timestep: int) -> float:
        """Returns the rate at `timestep`, the number of actions before this one."""
        return self._rate(timestep)

    def discrete(self, greedy: Array, actions: int, timestep: int) -> Array:
        """Returns actions int64 [N] in [0, actions), each random with probability `rate`.

        A random action is always drawn, also where it is not used, so that the state of the
        generator depends on the number of calls alone.
        """
        scale, chance = self.scale(), self.generator.random(len(greedy))
        random = self.generator.integers(actions, size=len(greedy))
        return np.where(chance < scale * self.rate(timestep), random, greedy)

    def scale(self) -> float:
        """Returns the factor by which this call multiplies the rate."""
        return 1.0

    def continuous(self, action: Array, timestep: int) -> Array:
        """Returns actions [N, ...] with `noise` added.

        The caller must clip them to the bounds of the action space.
        """
        return (action + self.noise(action.shape, timestep)).astype(action.dtype)

    def noise(self, shape: tuple[int, ...], timestep: int) -> Array:
        """Returns noise for continuous actions: normal, with the rate as standard deviation."""
        return self.scale() * (self.rate(timestep) * self.generator.standard_normal(shape))

    def state_dict(self) -> StateTree:
        """Returns the state of the generator."""
        return {"generator": generator_state(self.generator)}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the generator from `state`."""
        load_generator_state(self.generator, state["generator"])


class RandomDecay(Exploration):
    """Multiplies the rate by a new uniform random number in [0, 1) at each timestep."""

    def scale(self) -> float:
        """Draws the factor of this call from [0, 1)."""
        return self.generator.random()


class OrnsteinUhlenbeck(Exploration):
    """Ornstein-Uhlenbeck noise that returns to `mu` (Lillicrap et al. 2016, section 7).

    The update is x += theta * (mu - x) + sigma * N(0, 1).

    Args:
        sigma: Scale of the random steps.
        mu: Mean of the noise.
        theta: Rate of return to the mean, in [0, 1].
    """

    def __init__(self, sigma: float = 0.3, mu: float = 0.0, theta: float = 0.15) -> None:
        super().__init__(lambda _: sigma)
        self._sigma, self._mu, self._theta = sigma, mu, theta
        self._at: Array | None = None

    def discrete(self, greedy: Array, actions: int, timestep: int) -> Array:
        """Is not supported: this noise is for continuous actions.

        Raises:
            TypeError: Always.
        """
        del greedy, actions, timestep
        raise TypeError(
            "ornsteinuhlenbeck_process is for continuous actions: "
            "take decay or random_decay for discrete ones"
        )

    def noise(self, shape: tuple[int, ...], timestep: int) -> Array:
        """Advances the process by one step and returns its value, float64 of `shape`."""
        del timestep
        at = (
            np.full(shape, self._mu, np.float64)
            if self._at is None or self._at.shape != shape
            else self._at
        )
        self._at = (
            at + self._theta * (self._mu - at) + self._sigma * self.generator.standard_normal(shape)
        )
        return self._at

    def state_dict(self) -> StateTree:
        """Returns the state of the generator and the present noise."""
        return {**super().state_dict(), "at": self._at}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the generator and the noise from `state`."""
        super().load_state_dict(state)
        self._at = state["at"]


class PolicySampling(Exploration):
    """Gumbel noise: the argmax of logits plus this noise is a sample from softmax(logits)."""

    def __init__(self) -> None:
        super().__init__(lambda _: 1.0)

    def noise(self, shape: tuple[int, ...], timestep: int) -> Array:
        """Returns standard Gumbel noise, float64 of `shape`."""
        del timestep
        return self.generator.gumbel(size=shape)


policy_sampling = PolicySampling
"""Alias for model functions: the argmax of `explore(name, policy_sampling, logits)`, with logits
[N, actions], is a sample from softmax(logits) while the agent explores.
"""


def constant(value: float = 0.5) -> Exploration:
    """Returns an exploration with a constant rate."""
    return Exploration(lambda _: value)


def greedy() -> Exploration:
    """Returns an exploration with rate 0: all actions are greedy."""
    return constant(0.0)


def random() -> Exploration:
    """Returns an exploration with rate 1: all discrete actions are random."""
    return constant(1.0)


def decay(
    exploration_rate: float = 0.15,
    decay_type: str = "polynomial_decay",
    *,
    start_decay_at: int = 0,
    stop_decay_at: float = 1e9,
    min_exploration_rate: float = 0.0,
    **options: Any,
) -> Exploration:
    """Returns an exploration whose rate decays.

    The formulas are those of `workers.supervised.rate_decays`.

    Args:
        exploration_rate: The rate before `start_decay_at`, in [0, 1].
        decay_type: A key of `rate_decays.KINDS`.
        start_decay_at: Timestep at which the rate starts to decay.
        stop_decay_at: Timestep from which the rate is constant.
        min_exploration_rate: Lower bound of the decayed rate.
        **options: Options of `Decay`: `decay_steps` (100,000); `decay_rate`, required by the
            exponential, natural and inverse types; `staircase`; `end`, `power` and `cycle` for
            polynomial decay; `boundaries` and `values` for a piecewise constant rate.

    Raises:
        ValueError: If an option is out of its range.
    """
    rate, start, stop = exploration_rate, start_decay_at, stop_decay_at
    formula = Decay(decay_type=decay_type, **options).schedule(rate)
    if not 0 <= rate <= 1:
        raise ValueError(f"exploration_rate must lie in [0, 1], not {rate}")
    if not 0 <= start <= stop:
        raise ValueError(
            f"start_decay_at must lie between 0 and stop_decay_at, not {start} and {stop}"
        )
    return Exploration(
        lambda timestep: (
            rate
            if timestep < start
            else max(min_exploration_rate, formula(min(timestep, stop) - start))
        )
    )


def random_decay(
    exploration_rate: float = 0.15, decay_type: str = "polynomial_decay", **options: Any
) -> RandomDecay:
    """Returns a decaying exploration whose rate is multiplied by a random number at each timestep.

    The random number is uniform in [0, 1). `decay_steps` is 10,000 by default; see `decay` for the
    options.
    """
    options = {"decay_steps": 10_000, **options}
    return RandomDecay(decay(exploration_rate, decay_type, **options).rate)


ornsteinuhlenbeck_process = OrnsteinUhlenbeck
"""Alias of `OrnsteinUhlenbeck`, its name in definitions and model functions."""


DISCRETE: Final[Mapping[str, Callable[..., Exploration]]] = {
    "constant": constant,
    "greedy": greedy,
    "random": random,
    "decay": decay,
    "random_decay": random_decay,
}
"""Explorations of discrete actions by name."""

CONTINUOUS: Final[Mapping[str, Callable[..., Exploration]]] = {
    "decay": decay,
    "random_decay": random_decay,
    "ornsteinuhlenbeck_process": ornsteinuhlenbeck_process,
}
"""Explorations of continuous actions by name."""


def exploration(
    name: str,
    known: Mapping[str, Callable[..., Exploration]],
    options: Mapping[str, Any] | Sequence[Any] = (),
) -> Exploration:
    """Returns a new exploration, made by the factory `known[name]` with `options`.

    Raises:
        ValueError: If `known` has no such name.
    """
    if name not in known:
        raise ValueError(f"exploration: {name!r} is none of {', '.join(known)}")
    return known[name](**dict(options))
