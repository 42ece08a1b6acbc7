"""A third-party distribution of environments; importing it registers them with Gymnasium."""

import gymnasium as gym

gym.register(
    "tiny/Walk-v0", entry_point="tiny_envs.walk:Walk", max_episode_steps=50, kwargs={"length": 5}
)
gym.register("tiny/Broken-v0", entry_point="tiny_envs.walk:Nowhere")
gym.register("tiny/Given-v0", entry_point="tiny_envs.walk:RequiredArgumentWalk")
gym.register("tiny/Words-v0", entry_point="tiny_envs.walk:TextWalk")
gym.register(
    "tiny/Pole-v0", entry_point="gymnasium.envs.classic_control:CartPoleEnv", max_episode_steps=30
)
gym.register("CartPole-v1", entry_point="tiny_envs.walk:Walk")


def register():
    """Does nothing; entry points may name a function of the package."""
