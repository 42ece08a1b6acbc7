"""Trains with tianshou's procedural interface.

It uses a collector and the algorithm's own training, without logger and test collector.
"""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from tianshou.algorithm.modelfree.a2c import A2C
from tianshou.algorithm.modelfree.dqn import DQN, DiscreteQLearningPolicy
from tianshou.algorithm.modelfree.ppo import PPO
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy
from tianshou.algorithm.modelfree.sac import SAC, AutoAlpha, SACPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory, RMSpropOptimizerFactory
from tianshou.data import Batch, Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams, OnPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.continuous import ContinuousActorProbabilistic, ContinuousCritic
from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic

from benchmarks._peers.loops import Loop, Measurements
from benchmarks._peers.tasks import A2cSettings, DqnSettings, PpoSettings, SacSettings, Task

QUIET = {"verbose": False, "show_progress": False}


def build(task: Task, seed: int, env_steps: int) -> Loop:
    np.random.seed(seed)  # noqa: NPY002 - it draws from the global generator
    torch.manual_seed(seed)
    probe, num_envs = gym.make(task.env), getattr(task.settings, "num_envs", 1)
    envs = DummyVectorEnv([lambda: gym.make(task.env) for _ in range(num_envs)])
    envs.seed(seed)
    shape, actions = probe.observation_space.shape, probe.action_space
    match task.settings:
        case DqnSettings():
            policy, train = dqn(task.settings, envs, (shape, actions), env_steps)
        case SacSettings():
            policy, train = sac(task.settings, envs, (shape, actions), env_steps)
        case settings:
            policy, train = on_policy(settings, envs, (shape, actions), env_steps)

    def act(observation: np.ndarray) -> Any:
        policy.eval()
        with torch.no_grad():
            action = policy(Batch(obs=observation[None].astype(np.float32), info=Batch())).act
        array = action.cpu().numpy() if torch.is_tensor(action) else action
        return policy.map_action(array)[0]

    def run() -> Measurements:
        train()
        return Measurements(env_steps)

    return Loop(run, act, envs.close)


Trained = tuple[Any, Callable[[], None]]
Spaces = tuple[tuple[int, ...], gym.Space[Any]]


def dqn(settings: DqnSettings, envs: Any, spaces: Spaces, env_steps: int) -> Trained:
    shape, actions = spaces
    net = Net(state_shape=shape, action_shape=actions.n, hidden_sizes=list(settings.hidden))
    policy = DiscreteQLearningPolicy(
        model=net, action_space=actions, eps_training=1.0, eps_inference=0.0
    )
    algorithm = DQN(
        policy=policy,
        optim=AdamOptimizerFactory(lr=settings.learning_rate),
        gamma=settings.gamma,
        target_update_freq=settings.target_every,
        is_double=False,
        huber_loss_delta=1.0,
    )

    def set_epsilon(_epoch: int, step: int) -> None:
        done = min(1.0, (step + settings.learning_starts) / settings.epsilon_steps)
        policy.set_eps_training(
            settings.epsilon_start + done * (settings.epsilon_end - settings.epsilon_start)
        )

    collector = Collector(
        algorithm, envs, VectorReplayBuffer(settings.buffer, 1), exploration_noise=True
    )
    collector.reset()
    return policy, lambda: off_policy(
        algorithm, collector, settings, env_steps, settings.train_every, set_epsilon
    )


def sac(settings: SacSettings, envs: Any, spaces: Spaces, env_steps: int) -> Trained:
    shape, actions = spaces
    hidden, adam = list(settings.hidden), AdamOptimizerFactory(lr=settings.learning_rate)
    body = Net(state_shape=shape, hidden_sizes=hidden)
    actor = ContinuousActorProbabilistic(
        preprocess_net=body, action_shape=actions.shape, unbounded=True, conditioned_sigma=True
    )
    critics = [
        ContinuousCritic(
            preprocess_net=Net(
                state_shape=shape, action_shape=actions.shape, hidden_sizes=hidden, concat=True
            )
        )
        for _ in range(2)
    ]
    policy = SACPolicy(actor=actor, action_space=actions)
    algorithm = SAC(
        policy=policy,
        policy_optim=adam,
        critic=critics[0],
        critic_optim=adam,
        critic2=critics[1],
        critic2_optim=adam,
        tau=settings.tau,
        gamma=settings.gamma,
        alpha=AutoAlpha(
            -float(np.prod(actions.shape)), 0.0, AdamOptimizerFactory(lr=settings.learning_rate)
        ),
    )
    collector = Collector(
        algorithm, envs, VectorReplayBuffer(settings.buffer, 1), exploration_noise=True
    )
    collector.reset()
    return policy, lambda: off_policy(algorithm, collector, settings, env_steps, 1, None)


def off_policy(
    algorithm: Any,
    collector: Any,
    settings: DqnSettings | SacSettings,
    env_steps: int,
    train_every: int,
    training_fn: Any,
) -> None:
    collector.collect(n_step=settings.learning_starts, random=True)
    algorithm.run_training(
        OffPolicyTrainerParams(
            training_collector=collector,
            max_epochs=1,
            epoch_num_steps=env_steps - settings.learning_starts,
            collection_step_num_env_steps=train_every,
            batch_size=settings.batch,
            update_step_num_gradient_steps_per_sample=1 / train_every,
            training_fn=training_fn,
            **QUIET,
        )
    )


def on_policy(
    settings: PpoSettings | A2cSettings, envs: Any, spaces: Spaces, env_steps: int
) -> Trained:
    shape, actions = spaces
    bodies = [
        Net(state_shape=shape, hidden_sizes=list(settings.hidden), activation=torch.nn.Tanh)
        for _ in range(2)
    ]
    actor = DiscreteActor(preprocess_net=bodies[0], action_shape=actions.n, softmax_output=False)
    policy = DiscreteActorPolicy(actor=actor, action_space=actions, deterministic_eval=True)
    common: dict[str, Any] = {
        "policy": policy,
        "critic": DiscreteCritic(preprocess_net=bodies[1]),
        "vf_coef": settings.value,
        "ent_coef": settings.entropy,
        "max_grad_norm": settings.max_grad_norm,
        "gamma": settings.gamma,
    }
    rollout = settings.num_envs * settings.rollout
    if isinstance(settings, PpoSettings):
        adam = AdamOptimizerFactory(lr=settings.learning_rate)
        algorithm: Any = PPO(
            optim=adam,
            eps_clip=settings.clip_range,
            value_clip=False,
            gae_lambda=settings.gae_lambda,
            max_batchsize=2_048,
            **common,
        )
        passes, minibatch = settings.passes, settings.minibatch
    else:
        rms = RMSpropOptimizerFactory(
            lr=settings.learning_rate, eps=settings.rms_epsilon, alpha=settings.rms_decay
        )
        algorithm = A2C(optim=rms, gae_lambda=1.0, **common)
        passes, minibatch = 1, None
    collector = Collector(
        algorithm, envs, VectorReplayBuffer(rollout + settings.num_envs, settings.num_envs)
    )
    collector.reset()
    parameters = OnPolicyTrainerParams(
        training_collector=collector,
        max_epochs=1,
        epoch_num_steps=env_steps,
        collection_step_num_env_steps=rollout,
        batch_size=minibatch,
        update_step_num_repetitions=passes,
        **QUIET,
    )
    return policy, lambda: algorithm.run_training(parameters)
