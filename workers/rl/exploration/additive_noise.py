"""Noise that is added to continuous actions: independent or correlated from step to step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from workers.core.types import Array, StateTree
from workers.rl.exploration.explorer import DrawingExplorer, Explorer
from workers.rl.exploration.random_blocks import RandomBlocks
from workers.rl.exploration.schedules import ConstantSchedule, RateSchedule

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class ActionBounds:
    """Bounds to which actions are clipped."""

    low: float | Array = -1.0
    """Lower bound: one number, or one per entry of an action."""
    high: float | Array = 1.0
    """Upper bound: one number, or one per entry of an action."""


class AdditiveGaussian(DrawingExplorer):
    """Adds independent normal noise (Fujimoto et al. 2018, "TD3", section 6.1).

    Args:
        scale: Standard deviation: a constant, or a function of env_steps.
        bounds: Bounds to which noisy actions are clipped; `None` for no clipping.
        generator: Random generator, used by this explorer only.
    """

    def __init__(
        self,
        scale: RateSchedule | float = 0.1,
        *,
        generator: np.random.Generator,
        bounds: ActionBounds | None = ActionBounds(),
    ) -> None:
        super().__init__(RandomBlocks(generator, _draw))
        self._schedule = ConstantSchedule(scale) if isinstance(scale, int | float) else scale
        self._clip = _Clip(bounds)

    def explore(self, greedy: Floats, env_steps: int) -> Floats:
        """Returns actions [B, ...] of the dtype of `greedy`.

        Args:
            greedy: Actions float [B, ...] to add noise to; not changed.
            env_steps: Training env_steps before these actions.
        """
        self.draws.advance(greedy.shape)
        actions = self.draws.block[0][self.draws.step] * self._schedule(env_steps)
        actions += greedy
        return self._clip(actions, greedy.dtype)

    def metrics(self, env_steps: int) -> Mapping[str, float]:
        """Returns the standard deviation as `explore/scale`."""
        return {"explore/scale": self._schedule(env_steps)}


@dataclass(frozen=True, slots=True)
class OrnsteinUhlenbeckConstants:
    """Constants of an Ornstein-Uhlenbeck process: x <- x + theta (mu - x) + sigma N(0, 1)."""

    theta: float = 0.15
    """Rate of return to the mean, in (0, 1]."""
    mu: float = 0.0
    """Mean of the noise."""
    starts_at_mu: bool = True
    """Whether the first noise of an episode is mu + sigma N(0, 1).

    Otherwise it is drawn from the stationary distribution, mu + sigma / sqrt(2 theta - theta^2)
    N(0, 1).
    """


class AdditiveOrnsteinUhlenbeck(Explorer):
    """Adds noise that is correlated within an episode: an Ornstein-Uhlenbeck process.

    Uhlenbeck & Ornstein 1930; Lillicrap et al. 2016, "DDPG", section 7.

    The noise of an environment starts anew with each of its episodes; see `reset`.

    Args:
        sigma: Scale of the steps: a constant, or a function of env_steps; 0.2 in the paper, 0.3 in
            PFRL.
        constants: Constants of the process.
        bounds: Bounds to which noisy actions are clipped; `None` for no clipping.
        generator: Random generator, used by this explorer only.
    """

    def __init__(
        self,
        sigma: RateSchedule | float = 0.2,
        *,
        generator: np.random.Generator,
        constants: OrnsteinUhlenbeckConstants = OrnsteinUhlenbeckConstants(),
        bounds: ActionBounds | None = ActionBounds(),
    ) -> None:
        self._schedule = ConstantSchedule(sigma) if isinstance(sigma, int | float) else sigma
        self._constants = constants
        self._draws = RandomBlocks(generator, _draw)
        self._clip = _Clip(bounds)
        self._noise: Floats = np.zeros(0, np.float32)
        self._fresh: npt.NDArray[np.bool_] | None = None

    def explore(self, greedy: Floats, env_steps: int) -> Floats:
        """Advances the noise by one step; returns actions [B, ...] of the dtype of `greedy`.

        Args:
            greedy: Actions float [B, ...] to add noise to; not changed.
            env_steps: Training env_steps before these actions.
        """
        self._draws.advance(greedy.shape)
        normal, sigma = self._draws.block[0][self._draws.step], self._schedule(env_steps)
        if self._noise.shape != greedy.shape:
            self._noise, self._fresh = (
                np.zeros(greedy.shape, np.float32),
                np.ones(len(greedy), np.bool_),
            )
        theta, mu = self._constants.theta, self._constants.mu
        noise: Floats = self._noise * (1 - theta)
        noise += sigma * normal
        if mu:
            noise += theta * mu
        if self._fresh is not None:
            noise[self._fresh] = self._initial_noise(normal[self._fresh], sigma)
            self._fresh = None
        self._noise = noise
        return self._clip(noise + greedy, greedy.dtype)

    def reset(self, ended: npt.NDArray[np.bool_]) -> None:
        """Starts the noise anew at the next step where `ended`, bool [B], is true."""
        if ended.any():
            self._fresh = ended.copy() if self._fresh is None else self._fresh | ended

    def metrics(self, env_steps: int) -> Mapping[str, float]:
        """Returns sigma as `explore/scale`."""
        return {"explore/scale": self._schedule(env_steps)}

    def state_dict(self) -> StateTree:
        """Returns the random numbers, the noise, and the mask of slots where it starts anew."""
        return {"draws": self._draws.state_dict(), "noise": self._noise, "fresh": self._fresh}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the random numbers and the noise from `state`."""
        self._draws.load_state_dict(state["draws"])
        self._noise = np.array(state["noise"])
        self._fresh = None if state["fresh"] is None else np.array(state["fresh"])

    def _initial_noise(self, normal: Floats, sigma: float) -> Floats:
        """Returns the first noise of episodes, computed from `normal`, standard normal numbers."""
        theta = self._constants.theta
        return (
            self._constants.mu
            + (sigma if self._constants.starts_at_mu else sigma * (2 * theta - theta**2) ** -0.5)
            * normal
        )


class _Clip:
    """Clips actions to bounds, which are converted to the dtype of the actions once."""

    def __init__(self, bounds: ActionBounds | None) -> None:
        self._bounds = bounds
        self._dtype: np.dtype[Any] | None = None
        self._low: Array = np.zeros(0)
        self._high: Array = np.zeros(0)

    def __call__(self, actions: Floats, dtype: np.dtype[Any]) -> Floats:
        """Clips `actions` in place and returns them converted to `dtype`."""
        if self._bounds is not None:
            if self._dtype != actions.dtype:
                self._dtype = actions.dtype
                self._low, self._high = (
                    np.asarray(bound, actions.dtype)
                    for bound in (self._bounds.low, self._bounds.high)
                )
            np.maximum(actions, self._low, out=actions)
            np.minimum(actions, self._high, out=actions)
        return actions if actions.dtype == dtype else actions.astype(dtype)


def _draw(generator: np.random.Generator, shape: tuple[int, ...]) -> Sequence[Array]:
    return (generator.standard_normal(shape, dtype=np.float32),)
