"""Hyperparameters of the agents that learn action values: the family of the deep Q-network."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from palestra.contract.agents.common import Activation, Discount, HiddenSizes, LearningRate, Probability
from palestra.contract.documents import Document


class DqnParameters(Document):
    """Deep Q-network (Mnih et al. 2015) with double Q-learning (van Hasselt et al. 2016); needs a discrete action space."""

    name: Literal["dqn"] = "dqn"
    """Name of the agent."""

    learning_rate: LearningRate = 1e-3
    """Adam step size."""

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

    double: bool = True
    """Choose the next action with the online network and value it with the target network."""

    epsilon_start: Probability = 1.0
    """Probability of a random action at env_step 0."""

    epsilon_end: Probability = 0.05
    """Probability of a random action from `epsilon_decay_steps` on."""

    epsilon_decay_steps: Annotated[int, Field(ge=1, le=1_000_000_000)] = 10_000
    """env_steps over which epsilon falls linearly."""

    loss: Literal["huber", "mse"] = "huber"
    """Loss on the temporal-difference error."""

    max_grad_norm: Annotated[float, Field(gt=0)] | None = 10.0
    """Global gradient norm to clip to; `null` does not clip."""

    hidden_sizes: HiddenSizes = (64, 64)
    """Units of each hidden layer."""

    activation: Activation = "relu"
    """Non-linearity between layers."""

    @model_validator(mode="after")
    def _sizes_fit(self) -> Self:
        if self.batch_size > self.buffer_size:
            raise ValueError(f"batch_size {self.batch_size} is larger than buffer_size {self.buffer_size}: lower one or raise the other")
        if self.epsilon_end > self.epsilon_start:
            raise ValueError(f"epsilon_end {self.epsilon_end} is above epsilon_start {self.epsilon_start}: epsilon only falls")
        return self
