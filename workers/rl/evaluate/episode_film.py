"""Plays one episode of an evaluation again, with the camera on.

Owns an environment made to be rendered. The episode begins from the seed that the evaluation gave
it, so it is the one that was counted.
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
    """Films episodes.

    Args:
        env: Made with `render_mode="rgb_array"`; owned.
        agent: Acts without exploring.

    Attributes:
        player: Plays them, and knows the return of the latest.

    Raises:
        DefinitionError: If the environment renders no pictures.
    """

    def __init__(self, env: Env, agent: TrainableAgent) -> None:
        if env.render_mode != "rgb_array":
            env.close()
            raise DefinitionError(
                "the environment cannot be filmed: it has no render mode rgb_array; leave the hook "
                "video out"
            )
        self.player = Player(env, agent)

    @property
    def fps(self) -> float:
        """Frames per second by the environment's own word, else 30."""
        return float(self.player.env.metadata.get("render_fps") or _DEFAULT_FPS)

    def frames(self, seed: int, most: int | None) -> Iterator[Array]:
        """Yields the pictures of one episode, uint8 [height, width, 3], at most `most` of them."""
        for _ in self.player.steps(seed, most):
            yield np.asarray(self.player.env.render())

    def close(self) -> None:
        """Closes the environment."""
        self.player.close()
