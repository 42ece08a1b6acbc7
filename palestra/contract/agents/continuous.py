"""Hyperparameters of the agents that learn continuous actions from a replay memory.

They need a Box action space with finite bounds.
"""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from palestra.contract.agents.common import (
    Activation,
    Discount,
    HiddenSizes,
    Hindsight,
    LearningRate,
)
from palestra.contract.builtin_agents import ActionKind, BuiltinParameters

TargetStep = Annotated[float, Field(gt=0, le=1)]
NoiseScale = Annotated[float, Field(ge=0, le=10)]


class ContinuousParameters(BuiltinParameters):
    """Parameters that all agents for continuous actions share."""

    action_spaces: ClassVar[tuple[ActionKind, ...]] = ("box",)
    needs_bounds: ClassVar[bool] = True

    learning_rate: LearningRate = 1e-3
    """Adam step size."""

    gamma: Discount = 0.99
    """Discount factor per env_step."""

    batch_size: Annotated[int, Field(ge=1, le=65_536)] = 256
    """Transitions per update."""

    buffer_size: Annotated[int, Field(ge=1, le=100_000_000)] = 1_000_000
    """Capacity of the replay memory in transitions."""

    learning_starts: Annotated[int, Field(ge=0, le=100_000_000)] = 1_000
    """env_steps collected before the first update, with actions drawn evenly from the space."""

    train_every: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """env_steps between two calls to learn."""

    updates_per_train: Annotated[int, Field(ge=1, le=10_000)] = 1
    """Updates made by one call to learn."""

    hindsight: Hindsight = None
    """Learning from goals that were reached by chance, where the environment has goals.

    `null` learns from the real ones alone.
    """

    hidden_sizes: HiddenSizes = (256, 256)
    """Units of each hidden layer of every network."""

    activation: Activation = "relu"
    """Non-linearity between layers."""

    @model_validator(mode="after")
    def _sizes_fit(self) -> Self:
        if self.batch_size > self.buffer_size:
            raise ValueError(
                f"batch_size {self.batch_size} is larger than buffer_size {self.buffer_size}: "
                "lower one or raise the other"
            )
        return self


class SacParameters(ContinuousParameters):
    """Soft actor-critic with a learned temperature (Haarnoja et al. 2018).

    "Soft Actor-Critic Algorithms and Applications".
    """

    stochastic_policy: ClassVar[bool] = True
    packs: ClassVar[bool] = True

    name: Literal["sac"] = "sac"
    """Name of the agent."""

    learning_rate: LearningRate = 3e-4
    """Adam step size of policy, critics and temperature."""

    tau: TargetStep = 0.005
    """Share of the way that the target critics go towards the critics at each update."""

    initial_temperature: Annotated[float, Field(gt=0, le=1_000)] = 1.0
    """Weight of the entropy at the first update."""

    learn_temperature: bool = True
    """Learn the temperature such that the policy's entropy approaches `target_entropy`.

    Otherwise the temperature stays constant.
    """

    target_entropy: Annotated[float, Field(ge=-1e6, le=1e6)] | None = None
    """Entropy in nats that the temperature aims at.

    `null` takes minus the number of entries of an action.
    """


class Td3Parameters(ContinuousParameters):
    """Twin delayed deep deterministic policy gradient (Fujimoto et al. 2018)."""

    packs: ClassVar[bool] = True

    name: Literal["td3"] = "td3"
    """Name of the agent."""

    batch_size: Annotated[int, Field(ge=1, le=65_536)] = 100
    """Transitions per update."""

    tau: TargetStep = 0.005
    """Share of the way that the target networks go towards the networks at each update of the
    policy.
    """

    policy_delay: Annotated[int, Field(ge=1, le=1_000)] = 2
    """Updates of the critics per update of the policy and the target networks."""

    exploration_noise: NoiseScale = 0.1
    """Standard deviation of the noise on actions, which lie in [-1, 1], while training data are
    collected.
    """

    target_noise: NoiseScale = 0.2
    """Standard deviation of the noise on the target policy's actions."""

    target_noise_clip: NoiseScale = 0.5
    """Largest size of that noise."""


class DdpgParameters(ContinuousParameters):
    """Deep deterministic policy gradient (Lillicrap et al. 2016)."""

    packs: ClassVar[bool] = True

    name: Literal["ddpg"] = "ddpg"
    """Name of the agent."""

    learning_rate: LearningRate = 1e-3
    """Adam step size of the critic."""

    actor_learning_rate: LearningRate = 1e-4
    """Adam step size of the policy; a schedule of the learning rate moves it in proportion."""

    batch_size: Annotated[int, Field(ge=1, le=65_536)] = 64
    """Transitions per update."""

    tau: TargetStep = 0.001
    """Share of the way that the target networks go towards the networks at each update."""

    critic_weight_decay: Annotated[float, Field(ge=0, le=1)] = 0.01
    """Weight of the squared parameters in the critic's loss, halved: what is added to the gradient
    is this times the parameters.
    """

    noise: Literal["ornstein_uhlenbeck", "gaussian"] = "ornstein_uhlenbeck"
    """Kind of the noise on actions: Ornstein-Uhlenbeck with theta 0.15, or independent Gaussian
    noise.
    """

    noise_scale: NoiseScale = 0.2
    """Size of the steps of the noise on actions, which lie in [-1, 1]."""


class NafParameters(ContinuousParameters):
    """Q-learning with normalised advantage functions (Gu et al. 2016)."""

    name: Literal["naf"] = "naf"
    """Name of the agent."""

    batch_size: Annotated[int, Field(ge=1, le=65_536)] = 64
    """Transitions per update."""

    updates_per_train: Annotated[int, Field(ge=1, le=10_000)] = 5
    """Updates made by one call to learn."""

    tau: TargetStep = 0.001
    """Share of the way that the target network goes towards the network at each update."""

    max_grad_norm: Annotated[float, Field(gt=0)] | None = None
    """Global gradient norm to clip to; `null` does not clip."""

    noise: Literal["ornstein_uhlenbeck", "gaussian"] = "gaussian"
    """Kind of the noise on actions: Ornstein-Uhlenbeck with theta 0.15, or independent Gaussian
    noise.
    """

    noise_scale: NoiseScale = 0.2
    """Size of the steps of the noise on actions, which lie in [-1, 1]."""
