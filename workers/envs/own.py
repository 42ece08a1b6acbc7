"""Registers the environments of Palestra when it is imported.

Afterwards `gymnasium.make("workers.envs.own:palestra/BitFlip-v0")` works.
"""

from workers.rl.envs.builtin import register_own as register_own
