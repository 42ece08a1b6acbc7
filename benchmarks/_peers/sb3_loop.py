"""Trains with Stable-Baselines3: its own `learn`, on environments made by its own helpers."""

from typing import Any

import numpy as np
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.env_util import make_atari_env, make_vec_env
from stable_baselines3.common.vec_env import VecFrameStack

from benchmarks._peers.loops import Loop, Measurements
from benchmarks._peers.tasks import (
    A2cSettings,
    AtariSettings,
    DqnSettings,
    PpoSettings,
    SacSettings,
    Task,
)


def build(task: Task, seed: int, env_steps: int) -> Loop:
    model = model_of(task, seed, env_steps)

    def train() -> Measurements:
        model.learn(total_timesteps=env_steps)
        return Measurements(model.num_timesteps)

    def act(observation: np.ndarray) -> Any:
        return model.predict(observation, deterministic=True)[0]

    return Loop(train, act)


def model_of(task: Task, seed: int, env_steps: int) -> Any:
    settings = task.settings
    common: dict[str, Any] = {
        "seed": seed,
        "device": "cpu",
        "gamma": settings.gamma,
        "learning_rate": settings.learning_rate,
    }
    match settings:
        case DqnSettings():
            return DQN(
                **q_network(task, settings),
                buffer_size=settings.buffer,
                learning_starts=settings.learning_starts,
                batch_size=settings.batch,
                train_freq=settings.train_every,
                gradient_steps=1,
                target_update_interval=settings.target_every
                * settings.train_every,  # it counts env_steps
                exploration_initial_eps=settings.epsilon_start,
                exploration_final_eps=settings.epsilon_end,
                exploration_fraction=settings.epsilon_steps / env_steps,
                **common,
            )
        case SacSettings():
            return SAC(
                "MlpPolicy",
                task.env,
                buffer_size=settings.buffer,
                learning_starts=settings.learning_starts,
                batch_size=settings.batch,
                tau=settings.tau,
                policy_kwargs={"net_arch": list(settings.hidden)},
                **common,
            )
        case PpoSettings() | A2cSettings():
            return on_policy(task.env, settings, common)


def q_network(task: Task, settings: DqnSettings) -> dict[str, Any]:
    if not isinstance(settings, AtariSettings):
        return {
            "policy": "MlpPolicy",
            "env": task.env,
            "policy_kwargs": {"net_arch": list(settings.hidden)},
        }
    import ale_py  # noqa: F401 - it names its games

    env = make_atari_env(task.env, env_kwargs={"frameskip": 1, "repeat_action_probability": 0.0})
    network = {"features_extractor_kwargs": {"features_dim": settings.hidden[0]}}
    thrifty = {
        "optimize_memory_usage": True,
        "replay_buffer_kwargs": {"handle_timeout_termination": False},
    }
    return {
        "policy": "CnnPolicy",
        "env": VecFrameStack(env, 4),
        "policy_kwargs": network,
        **thrifty,
    }


def on_policy(env_id: str, settings: PpoSettings | A2cSettings, common: dict[str, Any]) -> Any:
    common |= {
        "env": make_vec_env(env_id, n_envs=settings.num_envs, seed=common["seed"]),
        "n_steps": settings.rollout,
        "ent_coef": settings.entropy,
        "vf_coef": settings.value,
        "max_grad_norm": settings.max_grad_norm,
        "policy_kwargs": {"net_arch": {"pi": list(settings.hidden), "vf": list(settings.hidden)}},
    }
    if isinstance(settings, A2cSettings):
        return A2C("MlpPolicy", rms_prop_eps=settings.rms_epsilon, **common)
    return PPO(
        "MlpPolicy",
        n_epochs=settings.passes,
        batch_size=settings.minibatch,
        gae_lambda=settings.gae_lambda,
        clip_range=settings.clip_range,
        **common,
    )
