"""Hyperparameters of the agents that learn from what their present policy gathered."""

from typing import Annotated, Literal

from pydantic import Field

from palestra.contract.agents.common import Activation, Discount, HiddenSizes, LearningRate
from palestra.contract.documents import Document


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
