"""The tasks that all libraries train, with equal settings.

Imports neither torch nor a peer, so that the process that starts the trainings stays small.
"""

from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class DqnSettings:
    """Deep Q-learning with a target network, Huber loss and uniform replay.

    Double Q-learning and gradient clipping are off where the library has an option for them.
    """

    train_every: int
    """env_steps from one update to the next."""
    batch: int = 64
    buffer: int = 100_000
    learning_starts: int = 1_000
    gamma: float = 0.99
    target_every: int = 500
    """Updates from one copy of the online network to the next."""
    epsilon_start: float = 1.0
    epsilon_end: float = 0.05
    epsilon_steps: int = 5_000
    learning_rate: float = 1e-3
    hidden: tuple[int, ...] = (64, 64)


@dataclass(frozen=True, slots=True)
class AtariSettings(DqnSettings):
    """Deep Q-learning from images: preprocessing, convolutions and rewards of Mnih et al. 2015."""

    train_every: int = 4
    batch: int = 32
    buffer: int = 10_000
    target_every: int = 250
    epsilon_end: float = 0.01
    epsilon_steps: int = 30_000
    learning_rate: float = 1e-4
    hidden: tuple[int, ...] = (512,)
    """Units of each hidden layer after the convolutions."""


@dataclass(frozen=True, slots=True)
class PpoSettings:
    """Proximal policy optimisation with separate policy and value networks, both with tanh."""

    num_envs: int = 8
    rollout: int = 128
    passes: int = 4
    minibatch: int = 256
    gamma: float = 0.98
    gae_lambda: float = 0.95
    clip_range: float = 0.2
    entropy: float = 0.0
    value: float = 0.5
    max_grad_norm: float = 0.5
    learning_rate: float = 1e-3
    hidden: tuple[int, ...] = (64, 64)


@dataclass(frozen=True, slots=True)
class A2cSettings:
    """Advantage actor-critic with five-step returns."""

    num_envs: int = 2
    rollout: int = 5
    gamma: float = 0.99
    entropy: float = 0.0
    value: float = 0.5
    max_grad_norm: float = 0.5
    learning_rate: float = 7e-4
    rms_decay: float = 0.99
    rms_epsilon: float = 1e-5
    hidden: tuple[int, ...] = (64, 64)


@dataclass(frozen=True, slots=True)
class A3cSettings(A2cSettings):
    """Asynchronous advantage actor-critic: each environment in a process of its own.

    It does not converge with an epsilon of RMSprop as small as that of A2C.
    """

    rollout: int = 8
    entropy: float = 0.01
    learning_rate: float = 7e-3
    rms_epsilon: float = 0.1


@dataclass(frozen=True, slots=True)
class SacSettings:
    """Soft actor-critic with two critics and a learned temperature, one update per env_step."""

    batch: int = 256
    buffer: int = 100_000
    learning_starts: int = 256
    gamma: float = 0.99
    tau: float = 0.005
    learning_rate: float = 1e-3
    hidden: tuple[int, ...] = (256, 256)


Settings = DqnSettings | PpoSettings | A2cSettings | SacSettings

PEERS: Final = {"sb3": "stable-baselines3", "pfrl": "pfrl", "tianshou": "tianshou", "plain": ""}
"""The pip distribution of each peer; empty for `plain`, the loops of this repository."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task on which all libraries are trained."""

    name: str
    title: str
    env: str
    env_steps: int
    target: float | None
    """Lower bound on the throughput, as a multiple of that of the fastest peer."""
    settings: Settings = field(repr=False)
    pack_time: float | None = None
    """Upper bound on the time of a pack of 16 seeds, as a multiple of that of one seed."""
    pack_target: float | None = None
    """Lower bound on the time of the fastest peer for the seeds of a pack, one after the other.

    It is a multiple of the time of the pack.
    """
    peers: tuple[str, ...] = tuple(PEERS)
    """Names of the libraries to compare with."""
    is_return_reported: bool = True
    """Whether episodes are evaluated after the training; false where it is too short to learn."""


TASKS: Final = {
    task.name: task
    for task in (
        Task(
            "dqn1",
            "DQN, an update per env_step",
            "CartPole-v1",
            30_000,
            3,
            DqnSettings(train_every=1),
            5,
            10,
        ),
        Task(
            "dqn4",
            "DQN, an update per 4 env_steps",
            "CartPole-v1",
            30_000,
            3,
            DqnSettings(train_every=4),
            5,
            10,
        ),
        Task("ppo", "PPO, 8 environments", "CartPole-v1", 100_000, 3, PpoSettings(), None, 6),
        Task(
            "a2c",
            "A2C, 2 environments",
            "CartPole-v1",
            50_000,
            2.5,
            A2cSettings(),
            peers=("sb3", "tianshou", "plain"),
        ),
        Task("a3c", "A3C, 2 processes", "CartPole-v1", 50_000, 2.5, A3cSettings(), peers=("pfrl",)),
        Task("sac", "SAC, 256 x 256", "Pendulum-v1", 5_000, 1.15, SacSettings()),
        Task(
            "pong",
            "DQN on screens, an update per 4 env_steps",
            "ALE/Pong-v5",
            3_000,
            None,
            AtariSettings(),
            peers=("sb3",),
            is_return_reported=False,
        ),
    )
}
