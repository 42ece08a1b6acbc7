"""Hyperparameters of the built-in agents, declared here and nowhere else; and the shape of those that distributions register."""

import re
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from palestra.contract.documents import Document
from palestra.contract.names import NAME_PATTERN, Name
from palestra.contract.parameters import FreeParameters
from palestra.contract.sb3 import Sb3Parameters as Sb3Parameters

LearningRate = Annotated[float, Field(gt=0, le=1)]
Discount = Annotated[float, Field(ge=0, le=1)]
Probability = Annotated[float, Field(ge=0, le=1)]
HiddenSizes = Annotated[tuple[Annotated[int, Field(ge=1, le=8192)], ...], Field(max_length=16)]
Activation = Literal["relu", "tanh"]


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


class PpoParameters(Document):
    """Proximal policy optimisation (Schulman et al. 2017) with generalised advantage estimation; discrete or box actions."""

    name: Literal["ppo"] = "ppo"
    """Name of the agent."""

    learning_rate: LearningRate = 3e-4
    """Adam step size."""

    gamma: Discount = 0.99
    """Discount factor per env_step."""

    gae_lambda: Discount = 0.95
    """Trace decay of generalised advantage estimation."""

    rollout_steps: Annotated[int, Field(ge=1, le=1_000_000)] = 128
    """Vector steps collected per iteration; times `env.num_envs` gives the env_steps of a rollout."""

    passes: Annotated[int, Field(ge=1, le=1_000)] = 4
    """Passes over each rollout."""

    minibatch_size: Annotated[int, Field(ge=1, le=1_000_000)] = 256
    """Transitions per update."""

    clip_range: Annotated[float, Field(gt=0, le=10)] = 0.2
    """Clipping of the probability ratio."""

    value_coefficient: Annotated[float, Field(ge=0, le=100)] = 0.5
    """Weight of the value loss."""

    entropy_coefficient: Annotated[float, Field(ge=0, le=100)] = 0.0
    """Weight of the entropy bonus."""

    normalize_advantages: bool = True
    """Shift and scale the advantages of each minibatch to mean 0 and standard deviation 1."""

    target_kl: Annotated[float, Field(gt=0)] | None = None
    """Stop the passes over a rollout once the approximate KL divergence exceeds this; `null` never stops."""

    max_grad_norm: Annotated[float, Field(gt=0)] | None = 0.5
    """Global gradient norm to clip to; `null` does not clip."""

    hidden_sizes: HiddenSizes = (64, 64)
    """Units of each hidden layer of the policy and of the value network."""

    activation: Activation = "tanh"
    """Non-linearity between layers."""


class RegisteredAgent(Document):
    """An agent that a distribution on the workers registers under the entry point group `palestra.agents`."""

    name: Name
    """Name of the entry point. The catalogue of a pool lists those that its workers offer, with a schema of their parameters."""

    parameters: FreeParameters = Field(default_factory=dict)
    """Parameters of the agent, as its schema in the catalogue describes them. Defaults are filled in at submission."""

    @model_validator(mode="before")
    @classmethod
    def _nothing_beside(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.keys() - cls.model_fields.keys():
            known = ", ".join(BUILTIN_AGENTS)
            raise ValueError(
                f"is none of the built-in agents {known}; the parameters of an agent that a distribution registers go under parameters"
            )
        return value


BuiltinAgent = DqnParameters | PpoParameters | Sb3Parameters
BUILTIN_AGENTS: Final = ("dqn", "ppo", "sb3")
"""Names that no distribution can take."""


def _group_of(value: Any) -> str:
    """Tells registered names from all else, so that a fault in a built-in agent is told as precisely as if there were no others."""
    name = value.get("name") if isinstance(value, dict) else getattr(value, "name", None)
    registered = isinstance(name, str) and name not in BUILTIN_AGENTS and re.fullmatch(NAME_PATTERN, name) is not None
    return "tagged-union[registered]" if registered else "tagged-union[builtin]"


AgentParameters = Annotated[
    Annotated[Annotated[BuiltinAgent, Field(discriminator="name")], Tag("tagged-union[builtin]")]
    | Annotated[RegisteredAgent, Tag("tagged-union[registered]")],
    Discriminator(_group_of),
]
