"""The environments that come with Palestra, small tests of a single ability.

Importing this registers them.

Code outside reaches them as `gymnasium.make("workers.envs.own:palestra/BitFlip-v0")`.
"""

from typing import Final

import gymnasium as gym

OWN: Final = {
    "palestra/BitFlip-v0": "workers.rl.envs.bit_flip:BitFlip",
    "palestra/Recall-v0": "workers.rl.envs.recall:Recall",
}
"""Entry point of each id."""


def register_own() -> None:
    """Registers them, once."""
    for name, entry_point in OWN.items():
        if name not in gym.registry:
            gym.register(name, entry_point)


register_own()
