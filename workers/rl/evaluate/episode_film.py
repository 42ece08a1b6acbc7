"""Replays an episode of an evaluation in a rendered environment and yields its frames.

The episode begins from the same seed as in the evaluation, so that it is the same episode.
"""

from collections.abc import Iterator

import numpy as np

from workers.core.errors import DefinitionError
from workers.core.protocols import TrainableAgent
from workers.core.types import Array
from workers.rl.envs.env_types import Env
from workers.rl.evaluate.episode_player import Player

_DEFAULT_FPS = 30.0


class Film:
    """Renders episodes as frames.

    Args:
        env: Environment that was made with `render_mode="rgb_array"`; owned.
        agent: Acts without exploration.
        draws_actions: Whether actions are drawn from the policy; see `Player`.

    Attributes:
        player: Plays the episodes; its `episode_return` is that of the latest episode.

    Raises:
        DefinitionError: If the environment does not render RGB arrays.
    """

    def __init__(self, env: Env, agent: TrainableAgent, *, draws_actions: bool = False) -> None:
        if env.render_mode != "rgb_array":
            env.close()
            raise DefinitionError(
                "the environment cannot be filmed: it has no render mode rgb_array; leave the hook "
                "video out"
            )
        self.player = Player(env, agent, draws_actions=draws_actions)

    @property
    def fps(self) -> float:
        """Frames per second: `render_fps` of the environment's metadata, else 30."""
        return float(self.player.env.metadata.get("render_fps") or _DEFAULT_FPS)

    def frames(self, seed: int, max_frames: int | None) -> Iterator[Array]:
        """Yields the frames of one episode, uint8 [height, width, 3] each.

        Args:
            seed: Seed of the episode.
            max_frames: Maximum number of frames; `None` for all.
        """
        for _ in self.player.play_episode(seed, max_frames):
            yield np.asarray(self.player.env.render())

    def close(self) -> None:
        """Closes the environment."""
        self.player.close()
