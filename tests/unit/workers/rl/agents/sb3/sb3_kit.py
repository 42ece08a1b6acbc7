"""Helpers for the tests of Stable-Baselines3's algorithms."""

from collections.abc import Callable
from typing import Any

from palestra.contract.agents import Sb3Parameters
from tests.support.trainings import TrainingAttempt, make_definition
from workers.assembly.training import Training
from workers.core.types import AgentContext, StopReason
from workers.trainer_process.schedules import agent_driven

OFF_POLICY = {
    "learning_starts": 40,
    "buffer_size": 400,
    "batch_size": 8,
    "policy_kwargs": {"net_arch": [8]},
}
ON_POLICY = {"n_steps": 32, "policy_kwargs": {"net_arch": [8]}}
ALGORITHMS: dict[str, tuple[str, dict[str, Any]]] = {
    "A2C": ("CartPole-v1", {**ON_POLICY, "n_steps": 8}),
    "PPO": ("CartPole-v1", {**ON_POLICY, "batch_size": 32, "n_epochs": 2}),
    "DQN": ("CartPole-v1", {**OFF_POLICY, "target_update_interval": 50}),
    "DDPG": (
        "Pendulum-v1",
        {**OFF_POLICY, "action_noise": {"name": "ornstein_uhlenbeck", "sigma": 0.2}},
    ),
    "SAC": ("Pendulum-v1", OFF_POLICY),
    "TD3": (
        "Pendulum-v1",
        {**OFF_POLICY, "action_noise": {"name": "normal"}, "train_freq": [2, "step"]},
    ),
}
"""Environment and small parameters of each algorithm."""


def make_document(
    algorithm: str, num_envs: int = 1, policy: str = "MlpPolicy", **sections: Any
) -> dict[str, Any]:
    """Returns a definition of 200 env_steps.

    `parameters` in the sections are added to small parameters of the algorithm.
    """
    env, parameters = ALGORITHMS[algorithm]
    parameters = {**parameters, **sections.pop("parameters", {})}
    base = {
        "env": {"id": env, "num_envs": num_envs, "max_episode_steps": 30},
        "agent": {
            "name": "sb3",
            "algorithm": algorithm,
            "policy": policy,
            "parameters": parameters,
        },
        "loop": {"env_steps": 200, "epoch_env_steps": 100},
        "evaluation": {"every_env_steps": 75, "episodes": 2, "max_episode_steps": 20},
        "snapshot": {"every_env_steps": 130},
    }
    return {**make_definition(), **base, **sections}


class Sb3TrainingAttempt(TrainingAttempt):
    """One attempt at training with a Stable-Baselines3 algorithm and its own loop."""

    def _drive(self, training: Training, stop_at: int | None, pause_at: int | None) -> None:
        assert training.own_loop is not None
        loop = training.own_loop
        self.clock = training.engine.clock
        self.agent: Any = training.agent

        def advance_and_pause(advance: Callable[[], bool]) -> bool:
            goes_on = advance()
            if pause_at is not None and self.clock.env_steps >= pause_at:
                self.control.give(StopReason.PAUSE)
            return goes_on

        self.result = agent_driven.run(
            training.engine, lambda advance: loop(lambda: advance_and_pause(advance))
        )


def make_sb3_agent(
    context: AgentContext, algorithm: str = "DQN", policy: str = "MlpPolicy", **parameters: Any
) -> Any:
    from workers.rl.agents.sb3.build import build

    given = Sb3Parameters.model_validate(
        {"algorithm": algorithm, "policy": policy, "parameters": parameters}
    )
    return build(given, context)
