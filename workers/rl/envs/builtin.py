"""Palestra's own environments, each a small test of one ability of an agent.

Importing this module registers them with Gymnasium. Other code makes an environment with
`gymnasium.make("workers.rl.envs.builtin:palestra/BitFlip-v0")`.
"""

from typing import Final

import gymnasium as gym

BUILTIN: Final = {
    "palestra/BitFlip-v0": "workers.rl.envs.bit_flip:BitFlip",
    "palestra/Recall-v0": "workers.rl.envs.recall:Recall",
}
"""Maps each environment id to its entry point."""


def register_own() -> None:
    """Registers the environments of `BUILTIN` that are not registered yet."""
    for name, entry_point in BUILTIN.items():
        if name not in gym.registry:
            gym.register(name, entry_point)


register_own()
