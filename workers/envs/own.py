"""Importing this registers the environments of Palestra:
`gymnasium.make("workers.envs.own:palestra/BitFlip-v0")`.
"""

from workers.rl.envs.builtin import register_own as register_own
