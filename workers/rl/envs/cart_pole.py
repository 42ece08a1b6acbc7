"""Gymnasium's cart-pole, vectorised: each array operation steps all copies.

The results equal those of separate copies to the last bit. Eight copies take a third of the time.

Gymnasium's own vector environment of it takes one seed for all copies and resets them by itself;
here each episode has its own seed and begins where a mask is true. The equations of motion are
those of `gymnasium.envs.classic_control.cartpole.CartPoleEnv` (Barto, Sutton and Anderson 1983;
Florian 2007), evaluated in the same order. `CartPoleVector` and `SavedCartPole` save episodes in
the same format, so that each can restore episodes of the other.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from gymnasium.envs.registration import EnvSpec as Registered
from gymnasium.utils.seeding import np_random

from workers.core.errors import EnvironmentFailedError
from workers.core.rng import generator_state
from workers.core.types import Array, StateTree
from workers.rl.envs.env_types import Info
from workers.rl.envs.resumable_episode import RestoredEpisode, observation_hash
from workers.rl.envs.slots import give_views
from workers.rl.envs.vector import StepArrays

LEAST: Final = 4
"""Number of copies from which `CartPoleVector` is faster than stepping copies one by one."""
_ENTRY_POINT: Final = "gymnasium.envs.classic_control.cartpole:CartPoleEnv"
_OPTIONS: Final = frozenset({"sutton_barto_reward"})
_START: Final = 0.05
"""An episode begins with four numbers drawn uniformly from [-0.05, 0.05)."""
_ARRAYS: Final = ("_state", "_terminated", "_truncated", "_over", "_lengths", "_seeds")
"""Attributes that hold the state of the slots; slots are the last dimension of each."""


def is_cart_pole(registered: Registered, kwargs: Mapping[str, object]) -> bool:
    """Returns whether `CartPoleVector` computes this registered environment with `kwargs`."""
    return (
        registered.entry_point == _ENTRY_POINT
        and not registered.additional_wrappers
        and set(registered.kwargs) | set(kwargs) <= _OPTIONS
    )


def accelerations(
    env: CartPoleEnv, force: Any, theta_dot: Any, cosine: Any, sine: Any
) -> tuple[Any, Any]:
    """Returns the accelerations of cart and pole, numbers or arrays [B] like the arguments.

    The order of evaluation is Gymnasium's, so that results agree to the last bit.
    """
    temp = (force + env.polemass_length * (theta_dot * theta_dot) * sine) / env.total_mass
    share = env.length * (4.0 / 3.0 - env.masspole * (cosine * cosine) / env.total_mass)
    theta_acc = (env.gravity * sine - cosine * temp) / share
    return temp - env.polemass_length * theta_acc * cosine / env.total_mass, theta_acc


class SavedCartPole(CartPoleEnv):
    """Gymnasium's cart-pole with a state that can be saved, three times as fast.

    See `workers.rl.envs.resumable_episode.StatefulEnv`.
    """

    entry_point: Final = f"{__name__}:SavedCartPole"

    def step(self, action: object) -> tuple[Array, float, bool, bool, Info]:
        """Steps like `CartPoleEnv.step`, with the same result to the last bit.

        It computes with Python floats, which are faster, and uses NumPy only for sine and cosine,
        whose last bit may differ.
        """
        if (
            self.state is None
            or self.steps_beyond_terminated is not None
            or self.render_mode == "human"
            or action not in {0, 1}
        ):
            checked: tuple[Array, float, bool, bool, dict[str, object]] = super().step(action)  # type: ignore[no-untyped-call]
            return checked
        x, x_dot, theta, theta_dot = self.state.tolist()
        force = self.force_mag if action == 1 else -self.force_mag
        x_acc, theta_acc = accelerations(
            self, force, theta_dot, float(np.cos(theta)), float(np.sin(theta))
        )
        x, x_dot = x + self.tau * x_dot, x_dot + self.tau * x_acc
        theta, theta_dot = theta + self.tau * theta_dot, theta_dot + self.tau * theta_acc
        self.state = np.array((x, x_dot, theta, theta_dot))
        has_fallen = abs(x) > self.x_threshold or abs(theta) > self.theta_threshold_radians
        reward = 1.0
        if has_fallen:
            self.steps_beyond_terminated = 0  # type: ignore[assignment]
        if self._sutton_barto_reward:
            reward = -1.0 if has_fallen else 0.0
        return self.state.astype(np.float32), reward, has_fallen, False, {}

    def snapshot_state(self) -> StateTree:
        """Returns the state: position, velocity, angle and angular velocity, float64 [4]."""
        return {"state": np.array(self.state, np.float64)}

    def restore_state(self, state: StateTree) -> None:
        """Sets the state to what `snapshot_state` returned."""
        self.state = np.array(state["state"], np.float64)


class CartPoleVector:
    """Copies of cart-pole, stepped together; an `EpisodeVector`.

    Args:
        num_envs: Number of copies, B.
        max_episode_steps: Time limit in env_steps; `None` for none.
        options: Arguments of the environment.
    """

    def __init__(self, num_envs: int, max_episode_steps: int | None, **options: Any) -> None:
        self._one = CartPoleEnv(**options)
        self.options = options
        self.num_envs = num_envs
        self.single_observation_space = self._one.observation_space
        self.single_action_space = self._one.action_space
        self.limit = max_episode_steps or 2**63 - 1
        self._lasting, self._falling = (
            (0.0, -1.0) if options.get("sutton_barto_reward") else (1.0, 1.0)
        )
        self._forces = np.array((-self._one.force_mag, self._one.force_mag))
        """Force of each action, float64 [2]."""
        self._bounds = np.array([[self._one.x_threshold], [self._one.theta_threshold_radians]])
        """Largest absolute position and angle of a running episode, float64 [2, 1]."""
        self._state = np.zeros((4, num_envs), np.float64)
        """Position, velocity, angle and angular velocity of each slot, [4, B]."""
        self._observation = np.zeros((num_envs, 4), np.float32)
        self._terminated = np.zeros(num_envs, np.bool_)
        self._truncated = np.ones(num_envs, np.bool_)
        self._over = np.ones(num_envs, np.bool_)
        self._lengths = np.zeros(num_envs, np.int64)
        self._seeds = np.zeros(num_envs, np.int64)

    def take(self, vectors: Sequence[Self]) -> None:
        """Continues the episodes of `vectors`, which have the same options as this one.

        Their arrays become views of this vector's arrays, so that each can still save and restore
        its own episodes.
        """
        give_views(self, vectors, _ARRAYS, are_slots_last=True)

    def begin(self, mask: npt.NDArray[np.bool_], seeds: Sequence[int]) -> Array:
        """Begins episodes where `mask` [B] is true; returns the observations, float32 [B, 4]."""
        for index in np.flatnonzero(mask).tolist():
            self._seeds[index] = seeds[index]
            self._state[:, index] = np_random(int(seeds[index]))[0].uniform(-_START, _START, 4)
            self._run(index, 0)
        self._observation[:] = self._state.T
        return self._observation

    def advance(self, actions: Array) -> StepArrays:
        """Steps all slots; slots whose episode is over keep their state, with reward 0."""
        if (
            actions.shape != self._over.shape
            or actions.dtype.kind not in "biu"
            or np.count_nonzero(actions >> 1)
        ):
            actions = _check_actions(actions, self.num_envs)
        waiting = self._over if np.count_nonzero(self._over) else None
        resting = None if waiting is None else self._state[:, waiting]
        self._move(actions)
        is_outside = np.abs(self._state[::2]) > self._bounds
        has_fallen = is_outside[0] | is_outside[1]
        self._lengths += 1
        reward = np.where(has_fallen, self._falling, self._lasting)
        if waiting is None:
            self._terminated[:] = has_fallen
            np.greater_equal(self._lengths, self.limit, out=self._truncated)
        else:
            self._state[:, waiting] = resting
            reward[waiting] = 0.0
            self._terminated[~waiting] = has_fallen[~waiting]
            self._truncated[~waiting] = self._lengths[~waiting] >= self.limit
        np.logical_or(self._terminated, self._truncated, out=self._over)
        self._observation[:] = self._state.T
        return self._observation, reward, self._terminated.copy(), self._truncated.copy()

    def successes(self) -> list[bool | None]:
        """Returns `None` for each slot: cart-pole does not define success."""
        return [None] * self.num_envs

    def save_episodes(self) -> list[StateTree]:
        """Returns the episode in progress of each slot.

        Steps draw no random numbers, so the state of the equations determines an episode.
        """
        return [
            {"over": True} if over else self._save_episode(index)
            for index, over in enumerate(self._over.tolist())
        ]

    def restore_episodes(self, episodes: list[StateTree]) -> list[RestoredEpisode]:
        """Restores the episodes in progress from `episodes`, one per slot."""
        self._truncated[:] = self._over[:] = True
        return [self._restore_episode(index, saved) for index, saved in enumerate(episodes)]

    def close(self) -> None:
        """Does nothing: no resource is held."""

    def _move(self, actions: Array) -> None:
        """Advances all slots by one time step of Euler's method.

        Positions are advanced with the velocities from before the step.
        """
        _, _, theta, theta_dot = self._state
        x_acc, theta_acc = accelerations(
            self._one, self._forces.take(actions), theta_dot, np.cos(theta), np.sin(theta)
        )
        positions, velocities = self._state[::2], self._state[1::2]
        positions += self._one.tau * velocities
        velocities += self._one.tau * np.array((x_acc, theta_acc))

    def _save_episode(self, index: int) -> StateTree:
        seed, observation = int(self._seeds[index]), self._state[:, index].astype(np.float32)
        generator, _ = np_random(seed)
        generator.uniform(-_START, _START, 4)
        saved: StateTree = {
            "over": False,
            "seed": seed,
            "length": int(self._lengths[index]),
            "hash": observation_hash(observation),
        }
        state = {"state": self._state[:, index].copy()}
        return {
            **saved,
            "state": state,
            "observation": observation,
            "generator": generator_state(generator),
        }

    def _run(self, index: int, length: int) -> None:
        self._terminated[index] = self._truncated[index] = self._over[index] = False
        self._lengths[index] = length

    def _restore_episode(self, index: int, saved: StateTree) -> RestoredEpisode:
        if saved["over"]:
            return RestoredEpisode(None, is_reproduced=True)
        if not isinstance(saved.get("state"), dict):
            return RestoredEpisode(None, is_reproduced=False)
        self._seeds[index], self._state[:, index] = saved["seed"], saved["state"]["state"]
        self._run(index, int(saved["length"]))
        return RestoredEpisode(self._state[:, index].astype(np.float32), is_reproduced=True)


def _check_actions(actions: Array, num_envs: int) -> npt.NDArray[np.int64]:
    """Returns `actions` as int64 [B]; floats equal to 0 or 1 are accepted.

    Raises:
        EnvironmentFailedError: If an action is neither 0 nor 1, or the shape is not [num_envs].
    """
    if actions.shape != (num_envs,) or ((actions != 0) & (actions != 1)).any():
        given = f"{actions.tolist()[:8]}, of shape {list(actions.shape)}"
        raise EnvironmentFailedError(
            f"the environment raised in a step: {num_envs} actions must be 0 or 1, not {given}"
        )
    return actions.astype(np.int64)
