"""Trains with PFRL's own experiment loops.

These are `train_agent`, `train_agent_batch`, and `train_agent_async` for A3C in two processes.
"""

import contextlib
import io
import resource
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import distributions, nn
from torch.nn.utils import parameters_to_vector

with contextlib.redirect_stderr(io.StringIO()):
    import pfrl  # it loads gym, which complains about itself

from pfrl import agents, experiments, explorers, replay_buffers
from pfrl.nn import Branched, ConcatObsAndAction
from pfrl.nn.lmbda import Lambda
from pfrl.policies import SoftmaxCategoricalHead

from benchmarks._peers.loops import Loop, Measurements
from benchmarks._peers.tasks import A3cSettings, DqnSettings, PpoSettings, SacSettings, Task


class OldEnv:
    """A Gymnasium environment with the older interface that PFRL expects.

    Box actions are in [-1, 1].
    """

    def __init__(self, env_id: str, seed: int) -> None:
        self._env = gymnasium.make(env_id)
        self._seed: int | None = seed
        self.observation_space, self.action_space, self.spec = (
            self._env.observation_space,
            self._env.action_space,
            self._env.spec,
        )
        self._scale = (
            float(self.action_space.high[0])
            if isinstance(self.action_space, gymnasium.spaces.Box)
            else None
        )

    def reset(self) -> Any:
        observation, _ = self._env.reset(seed=self._seed)
        self._seed = None
        return observation

    def step(self, action: Any) -> tuple[Any, float, bool, dict[str, Any]]:
        scaled = action if self._scale is None else np.asarray(action) * self._scale
        observation, reward, terminated, truncated, info = self._env.step(scaled)
        if truncated:
            info["needs_reset"] = True
        return observation, float(reward), terminated, info

    def close(self) -> None:
        self._env.close()


def build(task: Task, seed: int, env_steps: int) -> Loop:
    pfrl.utils.set_random_seed(seed)
    env, directory = OldEnv(task.env, seed), tempfile.TemporaryDirectory(prefix="pfrl-")
    match task.settings:
        case DqnSettings():
            agent, train = serial(dqn(task.settings, env), env, env_steps, directory.name)
        case SacSettings():
            agent, train = serial(sac(task.settings, env, seed), env, env_steps, directory.name)
        case PpoSettings():
            agent, train = batch(task.settings, task.env, seed, env_steps, directory.name)
        case A3cSettings():
            agent, train = asynchronous(task.settings, task.env, seed, env_steps, directory.name)
    scale = (
        float(env.action_space.high[0])
        if isinstance(env.action_space, gymnasium.spaces.Box)
        else None
    )

    def act(observation: np.ndarray) -> Any:
        agent.act_deterministically = True
        with agent.eval_mode():
            action = agent.act(observation)
        return int(action) if scale is None else np.asarray(action) * scale

    return Loop(train, act, directory.cleanup)


Trained = tuple[Any, Callable[[], Measurements]]


def serial(agent: Any, env: OldEnv, env_steps: int, directory: str) -> Trained:
    def train() -> Measurements:
        experiments.train_agent(agent, env, steps=env_steps, outdir=directory)
        return Measurements(env_steps)

    return agent, train


def batch(settings: PpoSettings, env_id: str, seed: int, env_steps: int, directory: str) -> Trained:
    envs = pfrl.envs.SerialVectorEnv(
        [OldEnv(env_id, seed * 100 + index) for index in range(settings.num_envs)]
    )
    model = actor_critic(settings.hidden)
    agent = agents.PPO(
        model,
        torch.optim.Adam(model.parameters(), lr=settings.learning_rate, eps=1e-5),
        gamma=settings.gamma,
        lambd=settings.gae_lambda,
        value_func_coef=settings.value,
        entropy_coef=settings.entropy,
        update_interval=settings.num_envs * settings.rollout,
        minibatch_size=settings.minibatch,
        epochs=settings.passes,
        clip_eps=settings.clip_range,
        clip_eps_vf=None,
        max_grad_norm=settings.max_grad_norm,
    )

    def train() -> Measurements:
        experiments.train_agent_batch(agent, envs, steps=env_steps, outdir=directory)
        return Measurements(env_steps)

    return agent, train


def asynchronous(
    settings: A3cSettings, env_id: str, seed: int, env_steps: int, directory: str
) -> Trained:
    model, processes = actor_critic(settings.hidden), settings.num_envs
    optimizer = pfrl.optimizers.SharedRMSpropEpsInsideSqrt(
        model.parameters(),
        lr=settings.learning_rate,
        eps=settings.rms_epsilon,
        alpha=settings.rms_decay,
    )
    agent = agents.A3C(
        model,
        optimizer,
        t_max=settings.rollout,
        gamma=settings.gamma,
        beta=settings.entropy,
        v_loss_coef=settings.value,
        max_grad_norm=settings.max_grad_norm,
    )

    def train() -> Measurements:
        before = parameters_to_vector(model.parameters()).detach().clone()
        experiments.train_agent_async(
            agent=agent,
            outdir=directory,
            processes=processes,
            # Called by these names.
            make_env=lambda index, test: OldEnv(env_id, seed * 100 + index),  # noqa: ARG005
            steps=env_steps,
            eval_interval=None,
            random_seeds=[seed * 10 + index for index in range(processes)],
        )
        agent.sync_parameters()
        if torch.equal(before, parameters_to_vector(model.parameters())):
            raise RuntimeError(
                "nothing was learnt: a process of train_agent_async failed, which it does not tell"
            )
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        return Measurements(env_steps, children_mib=processes * largest)

    return agent, train


def dqn(settings: DqnSettings, env: OldEnv) -> Any:
    model = nn.Sequential(
        mlp(4, settings.hidden, 2, nn.ReLU), pfrl.q_functions.DiscreteActionValueHead()
    )
    return agents.DQN(
        model,
        torch.optim.Adam(model.parameters(), lr=settings.learning_rate),
        replay_buffers.ReplayBuffer(settings.buffer),
        gamma=settings.gamma,
        explorer=explorers.LinearDecayEpsilonGreedy(
            settings.epsilon_start,
            settings.epsilon_end,
            settings.epsilon_steps,
            env.action_space.sample,
        ),
        replay_start_size=settings.learning_starts,
        minibatch_size=settings.batch,
        update_interval=settings.train_every,
        target_update_interval=settings.target_every * settings.train_every,  # it counts env_steps
    )


def sac(settings: SacSettings, env: OldEnv, seed: int) -> Any:
    inputs, outputs = env.observation_space.shape[0], env.action_space.shape[0]
    policy = nn.Sequential(
        mlp(inputs, settings.hidden, 2 * outputs, nn.ReLU), Lambda(squashed_gaussian)
    )
    critics = [
        nn.Sequential(ConcatObsAndAction(), mlp(inputs + outputs, settings.hidden, 1, nn.ReLU))
        for _ in range(2)
    ]
    random = np.random.default_rng(seed)
    optimizers = [
        torch.optim.Adam(part.parameters(), lr=settings.learning_rate)
        for part in (policy, *critics)
    ]
    return agents.SoftActorCritic(
        policy,
        *critics,
        *optimizers,
        replay_buffers.ReplayBuffer(settings.buffer),
        gamma=settings.gamma,
        replay_start_size=settings.learning_starts,
        minibatch_size=settings.batch,
        update_interval=1,
        soft_update_tau=settings.tau,
        burnin_action_func=lambda: random.uniform(-1, 1, outputs).astype(np.float32),
        entropy_target=-outputs,
        temperature_optimizer_lr=settings.learning_rate,
    )


def actor_critic(hidden: Sequence[int]) -> nn.Module:
    return Branched(
        nn.Sequential(mlp(4, hidden, 2, nn.Tanh), SoftmaxCategoricalHead()),
        mlp(4, hidden, 1, nn.Tanh),
    )


def mlp(
    inputs: int, hidden: Sequence[int], outputs: int, activation: type[nn.Module]
) -> nn.Sequential:
    layers: list[nn.Module] = []
    for units in hidden:
        layers += [nn.Linear(inputs, units), activation()]
        inputs = units
    return nn.Sequential(*layers, nn.Linear(inputs, outputs))


def squashed_gaussian(outputs: torch.Tensor) -> distributions.Distribution:
    mean, log_scale = outputs.chunk(2, dim=1)
    normal = distributions.Independent(distributions.Normal(mean, log_scale.clamp(-20, 2).exp()), 1)
    return distributions.TransformedDistribution(
        normal, [distributions.transforms.TanhTransform(cache_size=1)]
    )
