"""Videos of one episode of the policy after each epoch, for `plot=True`."""

import copy
import multiprocessing
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import gymnasium as gym
import numpy as np

from workers.core.recipes import RecipeError
from workers.core.rng import ENV_SEED_BITS, derive_seed
from workers.core.types import Array
from workers.recording.video_file import write_video
from workers.rl.envs.env_recipe import copy_env, env_from_recipe, env_recipe
from workers.rl.envs.env_types import Env
from workers.rl.evaluate.episode_film import Film

DIRECTORY: Final = "plots"
_MAX_FRAMES: Final = 1_000
"""Longest video in frames if the algorithm has no `max_episode_length`."""


class EpisodePlots:
    """Records a video of one episode per epoch.

    Args:
        algo: Algorithm whose `policy` acts. If the policy's infos have `mean`, it is the action.
        env: Environment; built again with `render_mode="rgb_array"`, or copied if it has this mode.
        directory: Output directory of the files `epoch_<e>.mp4`.

    Raises:
        ValueError: If there is no policy, no environment, or one that cannot render images.
    """

    def __init__(self, algo: object, env: Env | None, directory: Path) -> None:
        policy = getattr(algo, "policy", None)
        if env is None or not callable(getattr(policy, "get_action", None)):
            raise ValueError(
                "plot=True films the algorithm's policy in the environment: "
                "give setup both, or leave plot away"
            )
        self._directory = directory
        self._most = getattr(algo, "max_episode_length", None) or _MAX_FRAMES
        self._film = Film(_make_rendered_env(env), _PolicyCopier(policy))  # type: ignore[arg-type]

    def write(self, epoch: int) -> Path:
        """Records an episode and returns the path of the video."""
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._directory / f"epoch_{epoch}.mp4"
        write_video(
            path,
            self._film.frames(derive_seed(epoch, "plot", bits=ENV_SEED_BITS), self._most),
            self._film.fps,
        )
        return path

    def close(self) -> None:
        """Closes the environment."""
        self._film.close()


def is_interactive() -> bool:
    """Returns whether standard input and output are a terminal.

    False in a process that multiprocessing started.
    """
    return multiprocessing.parent_process() is None and all(
        stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)
    )


def wait_for_enter() -> None:
    """Waits for Enter, if the process is attached to a terminal."""
    if is_interactive():
        input("Press Enter to go on ...")


class _PolicyCopier:
    """Copies a policy for each episode, so that recording does not change the policy's state."""

    def __init__(self, policy: Any) -> None:
        self._original = self._policy = policy

    @contextmanager
    def eval_mode(self) -> Iterator[None]:
        """Copies the policy and resets the copy."""
        self._policy = copy.deepcopy(self._original)
        if callable(reset := getattr(self._policy, "reset", None)):
            reset()
        yield

    def act(self, observation: Array, *, explore: bool) -> Array:
        """Returns the action, [1, ...], for an observation, [1, ...]."""
        del explore
        action, info = self._policy.get_action(observation[0])
        return np.asarray(info.get("mean", action))[None]


def _make_rendered_env(env: Env) -> Env:
    if env.render_mode == "rgb_array":
        return copy_env(env)
    try:
        return env_from_recipe(env_recipe(env), render_mode="rgb_array")
    except (RecipeError, TypeError, gym.error.Error) as error:
        message = (
            f"plot=True needs pictures of the environment ({error}): "
            "make it with render_mode='rgb_array', or leave plot away"
        )
        raise ValueError(message) from error
