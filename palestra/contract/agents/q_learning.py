"""Hyperparameters of the agents that learn action values: the family of the deep Q-network."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from palestra.contract.agents.common import (
    Activation,
    Discount,
    HiddenSizes,
    Hindsight,
    LearningRate,
    PrioritizedReplay,
    Probability,
)
from palestra.contract.builtin_agents import ActionKind, BuiltinParameters

Atoms = Annotated[int, Field(ge=2, le=1_001)]
Steps = Annotated[int, Field(ge=1, le=100)]


class QLearningParameters(BuiltinParameters):
    """Parameters that all Q-learning agents share; they need a discrete action space.

    Images pass the convolutions of Mnih et al. first.
    """

    action_spaces: ClassVar[tuple[ActionKind, ...]] = ("discrete",)

    name: str
    """Name of the agent."""

    learning_rate: LearningRate = 1e-3
    """Adam step size."""

    adam_epsilon: Annotated[float, Field(gt=0, le=1)] = 1e-8
    """Added to the root of Adam's second moment."""

    gamma: Discount = 0.99
    """Discount factor per env_step."""

    batch_size: Annotated[int, Field(ge=1, le=65_536)] = 64
    """Transitions per update."""

    buffer_size: Annotated[int, Field(ge=1, le=100_000_000)] = 100_000
    """Capacity of the replay memory in transitions."""

    learning_starts: Annotated[int, Field(ge=0, le=100_000_000)] = 1_000
    """env_steps collected before the first update."""

    train_every: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """env_steps between two calls to learn."""

    updates_per_train: Annotated[int, Field(ge=1, le=10_000)] = 1
    """Updates made by one call to learn."""

    target_update_every: Annotated[int, Field(ge=1, le=10_000_000)] = 500
    """Updates between two copies of the online network into the target network."""

    epsilon_start: Probability = 1.0
    """Probability of a random action at env_step 0."""

    epsilon_end: Probability = 0.05
    """Probability of a random action from `epsilon_decay_steps` on."""

    epsilon_decay_steps: Annotated[int, Field(ge=1, le=1_000_000_000)] = 10_000
    """env_steps over which epsilon falls linearly."""

    max_grad_norm: Annotated[float, Field(gt=0)] | None = 10.0
    """Global gradient norm to clip to; `null` does not clip."""

    hidden_sizes: HiddenSizes = (64, 64)
    """Units of each hidden layer.

    Where observations are images, of those behind the convolutions.
    """

    activation: Activation = "relu"
    """Non-linearity between layers; convolutions have rectifiers."""

    @model_validator(mode="after")
    def _sizes_fit(self) -> Self:
        if self.batch_size > self.buffer_size:
            raise ValueError(
                f"batch_size {self.batch_size} is larger than buffer_size {self.buffer_size}: "
                "lower one or raise the other"
            )
        if self.epsilon_end > self.epsilon_start:
            raise ValueError(
                f"epsilon_end {self.epsilon_end} is above epsilon_start {self.epsilon_start}: "
                "epsilon only falls"
            )
        return self


class DqnParameters(QLearningParameters):
    """Deep Q-network (Mnih et al. 2015) with double Q-learning (van Hasselt et al. 2016).

    Later extensions are options.
    """

    packs: ClassVar[bool] = True

    name: Literal["dqn"] = "dqn"
    """Name of the agent."""

    double: bool = True
    """Choose the next action with the online network and value it with the target network."""

    dueling: bool = False
    """Streams for the value of the state and the advantages of the actions (Wang et al. 2016), each
    with the last hidden layer.
    """

    noisy: bool = False
    """Noisy last two layers (Fortunato et al. 2018), which explore by themselves: set both epsilons
    to 0.
    """

    n_step: Steps = 1
    """Rewards that are summed up before the bootstrap."""

    prioritized: PrioritizedReplay | None = None
    """Sampling in proportion to errors; `null` samples evenly."""

    hindsight: Hindsight = None
    """Learning from goals that were reached by chance, where the environment has goals.

    `null` learns from the real ones alone.
    """

    loss: Literal["huber", "mse"] = "huber"
    """Loss on the temporal-difference error."""

    @model_validator(mode="after")
    def _goals_are_one_step_away(self) -> Self:
        if self.hindsight is not None and self.n_step != 1:
            raise ValueError(
                f"n_step {self.n_step} sums up rewards of another goal: set it to 1, or leave "
                "hindsight out"
            )
        return self


class C51Parameters(QLearningParameters):
    """Categorical DQN (Bellemare et al. 2017), which learns the distribution of returns."""

    packs: ClassVar[bool] = True

    name: Literal["c51"] = "c51"
    """Name of the agent."""

    atoms: Atoms = 51
    """Returns that the distribution is made of, evenly from `v_min` to `v_max`."""

    v_min: float = -100.0
    """Lowest discounted return of the support; lower returns are projected onto it.

    The paper has -10, for rewards clipped to [-1, 1].
    """

    v_max: float = 100.0
    """Highest discounted return of the support; higher returns are projected onto it.

    The paper has 10.
    """

    double: bool = False
    """Choose the next action with the online network and value it with the target network."""

    dueling: bool = False
    """Streams for the state and for the actions, each with the last hidden layer."""

    noisy: bool = False
    """Noisy last two layers, which explore by themselves: set both epsilons to 0."""

    n_step: Steps = 1
    """Rewards that are summed up before the bootstrap."""

    prioritized: PrioritizedReplay | None = None
    """Sampling in proportion to the Kullback-Leibler divergence; `null` samples evenly."""

    @model_validator(mode="after")
    def _atoms_spread(self) -> Self:
        _check_spread(self.v_min, self.v_max)
        return self


class RainbowParameters(QLearningParameters):
    """Rainbow (Hessel et al. 2018).

    It combines distributional, double, dueling, noisy, prioritized and n-step learning.
    """

    packs: ClassVar[bool] = True

    name: Literal["rainbow"] = "rainbow"
    """Name of the agent."""

    epsilon_start: Probability = 0.0
    """Probability of a random action at env_step 0; the noisy layers explore."""

    epsilon_end: Probability = 0.0
    """Probability of a random action from `epsilon_decay_steps` on."""

    atoms: Atoms = 51
    """Returns that the distribution is made of, evenly from `v_min` to `v_max`."""

    v_min: float = -100.0
    """Lowest discounted return of the support; lower returns are projected onto it.

    The paper has -10, for rewards clipped to [-1, 1].
    """

    v_max: float = 100.0
    """Highest discounted return of the support; higher returns are projected onto it.

    The paper has 10.
    """

    n_step: Steps = 3
    """Rewards that are summed up before the bootstrap."""

    prioritized: PrioritizedReplay = PrioritizedReplay(alpha=0.5)
    """Sampling in proportion to the Kullback-Leibler divergence."""

    @model_validator(mode="after")
    def _atoms_spread(self) -> Self:
        _check_spread(self.v_min, self.v_max)
        return self


class IqnParameters(QLearningParameters):
    """Implicit quantile network (Dabney et al. 2018), which learns the quantiles of returns."""

    packs: ClassVar[bool] = True

    name: Literal["iqn"] = "iqn"
    """Name of the agent."""

    fractions: Annotated[int, Field(ge=1, le=256)] = 8
    """Quantile fractions per sample of the present values, N.

    64 in the paper, which shows 8 to do nearly as well.
    """

    target_fractions: Annotated[int, Field(ge=1, le=256)] = 8
    """Quantile fractions per sample of the target, N'; 64 in the paper."""

    acting_fractions: Annotated[int, Field(ge=1, le=256)] = 32
    """Quantile fractions whose mean is the value of an action, K."""

    cosines: Annotated[int, Field(ge=1, le=1_024)] = 64
    """Cosines that a fraction is embedded by."""

    kappa: Annotated[float, Field(gt=0, le=1_000)] = 1.0
    """Error up to which the loss is quadratic."""

    double: bool = False
    """Choose the next action with the online network and value it with the target network."""

    n_step: Steps = 1
    """Rewards that are summed up before the bootstrap."""

    prioritized: PrioritizedReplay | None = None
    """Sampling in proportion to errors; `null` samples evenly."""


class QrDqnParameters(QLearningParameters):
    """Quantile regression DQN (Dabney et al. 2018, AAAI).

    It learns the quantiles of returns at fixed fractions.
    """

    packs: ClassVar[bool] = True

    name: Literal["qr_dqn"] = "qr_dqn"
    """Name of the agent."""

    quantiles: Annotated[int, Field(ge=1, le=1_001)] = 200
    """Quantiles of each action's returns, N; their mean is the value of the action.

    The work of an update grows with their square.
    """

    kappa: Annotated[float, Field(gt=0, le=1_000)] = 1.0
    """Error up to which the loss is quadratic."""

    double: bool = False
    """Choose the next action with the online network and value it with the target network."""

    dueling: bool = False
    """Streams for the state and for the actions, each with the last hidden layer."""

    noisy: bool = False
    """Noisy last two layers, which explore by themselves: set both epsilons to 0."""

    n_step: Steps = 1
    """Rewards that are summed up before the bootstrap."""

    prioritized: PrioritizedReplay | None = None
    """Sampling in proportion to errors; `null` samples evenly."""


class DrqnParameters(QLearningParameters):
    """Deep recurrent Q-network (Hausknecht & Stone 2015), for partially observable tasks.

    Learns from sequences that begin anywhere with an empty memory, the first steps of which may
    only fill it (Kapturowski et al. 2019).
    """

    name: Literal["drqn"] = "drqn"
    """Name of the agent."""

    batch_size: Annotated[int, Field(ge=1, le=65_536)] = 32
    """Sequences per update."""

    train_every: Annotated[int, Field(ge=1, le=1_000_000)] = 4
    """env_steps between two calls to learn."""

    hidden_sizes: HiddenSizes = (64,)
    """Units of each hidden layer before the recurrent one.

    Where observations are images, behind the convolutions.
    """

    cell: Literal["lstm", "gru"] = "lstm"
    """Kind of the recurrent layer."""

    memory_units: Annotated[int, Field(ge=1, le=8192)] = 64
    """Units of the recurrent layer."""

    sequence_length: Annotated[int, Field(ge=1, le=1_000)] = 16
    """env_steps of a sequence, those that only fill the memory included.

    Sequences begin anywhere in an episode: what has to be remembered for n env_steps wants 2 n.
    """

    burn_in: Annotated[int, Field(ge=0, le=999)] = 0
    """First env_steps of a sequence, which only fill the memory."""

    double: bool = True
    """Choose the next action with the online network and value it with the target network."""

    loss: Literal["huber", "mse"] = "huber"
    """Loss on the temporal-difference error."""

    @model_validator(mode="after")
    def _something_is_learnt(self) -> Self:
        if self.burn_in >= self.sequence_length:
            raise ValueError(
                f"burn_in {self.burn_in} leaves nothing of a sequence_length of "
                f"{self.sequence_length}: lower it"
            )
        return self


def _check_spread(v_min: float, v_max: float) -> None:
    if not v_min < v_max:
        raise ValueError(
            f"v_min {v_min} must lie below v_max {v_max}: between them lie the returns that the "
            "atoms stand for"
        )
