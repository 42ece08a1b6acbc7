"""Hyperparameters of on-policy agents, which learn from rollouts of their current policy."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from palestra.contract.agents.common import Activation, Discount, HiddenSizes, LearningRate
from palestra.contract.builtin_agents import ALL_ACTION_SPACES, ActionKind, BuiltinParameters


class PpoParameters(BuiltinParameters):
    """Proximal policy optimisation (Schulman et al. 2017) with generalised advantage estimation.

    Discrete, multi-discrete, multi-binary or box actions.
    """

    stochastic_policy: ClassVar[bool] = True
    action_spaces: ClassVar[tuple[ActionKind, ...]] = ALL_ACTION_SPACES
    packs: ClassVar[bool] = True

    name: Literal["ppo"] = "ppo"
    """Name of the agent."""

    learning_rate: LearningRate = 3e-4
    """Adam step size."""

    gamma: Discount = 0.99
    """Discount factor per env_step."""

    gae_lambda: Discount = 0.95
    """Trace decay of generalised advantage estimation."""

    rollout_steps: Annotated[int, Field(ge=1, le=1_000_000)] = 128
    """Vector steps collected per iteration.

    Times `env.num_envs` gives the env_steps of a rollout.
    """

    passes: Annotated[int, Field(ge=1, le=1_000)] = 4
    """Passes over each rollout."""

    minibatch_size: Annotated[int, Field(ge=1, le=1_000_000)] = 256
    """Transitions per update; at most those of a rollout if it is left out."""

    clip_range: Annotated[float, Field(gt=0, le=10)] = 0.2
    """Clipping of the probability ratio."""

    value_coefficient: Annotated[float, Field(ge=0, le=100)] = 0.5
    """Weight of the value loss, which is the mean squared error of V."""

    entropy_coefficient: Annotated[float, Field(ge=0, le=100)] = 0.0
    """Weight of the entropy bonus."""

    normalize_advantages: bool = True
    """Shift and scale the advantages of each minibatch to mean 0 and standard deviation 1."""

    target_kl: Annotated[float, Field(gt=0)] | None = None
    """Stop the passes over a rollout once the approximate KL divergence exceeds this.

    `null` never stops.
    """

    max_grad_norm: Annotated[float, Field(gt=0)] | None = 0.5
    """Global gradient norm to clip to; `null` does not clip."""

    hidden_sizes: HiddenSizes = (64, 64)
    """Units of each hidden layer of the policy and of the value network."""

    activation: Activation = "tanh"
    """Non-linearity between layers."""

    normalize_observations: bool = False
    """Shift and scale each entry of the observations to mean 0 and standard deviation 1 by running
    statistics; needs a box of floats.
    """

    normalize_rewards: bool = False
    """Divide rewards by the running standard deviation of the discounted return."""


class A2cParameters(BuiltinParameters):
    """Advantage actor-critic (Mnih et al. 2016), synchronous variant.

    Discrete, multi-discrete, multi-binary or box actions.
    """

    stochastic_policy: ClassVar[bool] = True
    action_spaces: ClassVar[tuple[ActionKind, ...]] = ALL_ACTION_SPACES
    packs: ClassVar[bool] = True

    name: Literal["a2c"] = "a2c"
    """Name of the agent."""

    learning_rate: LearningRate = 7e-4
    """RMSprop step size."""

    gamma: Discount = 0.99
    """Discount factor per env_step."""

    rollout_steps: Annotated[int, Field(ge=1, le=1_000_000)] = 5
    """Vector steps collected per iteration.

    Times `env.num_envs` gives the env_steps of a rollout.
    """

    gae_lambda: Discount = 1.0
    """Trace decay of generalised advantage estimation.

    1 takes all rewards up to the end of the rollout.
    """

    normalize_advantages: bool = False
    """Shift and scale the advantages of each rollout to mean 0 and standard deviation 1."""

    value_coefficient: Annotated[float, Field(ge=0, le=100)] = 0.5
    """Weight of the value loss, which is the mean squared error of V."""

    entropy_coefficient: Annotated[float, Field(ge=0, le=100)] = 0.01
    """Weight of the entropy bonus."""

    rmsprop_decay: Annotated[float, Field(ge=0, lt=1)] = 0.99
    """Decay of the mean of squared gradients."""

    rmsprop_epsilon: Annotated[float, Field(gt=0, le=1)] = 1e-5
    """Added to the root of the mean of squared gradients."""

    epsilon_inside: bool = False
    """Add epsilon under the root and begin with a mean of 1, as TensorFlow does."""

    max_grad_norm: Annotated[float, Field(gt=0)] | None = 0.5
    """Global gradient norm to clip to; `null` does not clip."""

    hidden_sizes: HiddenSizes = (64, 64)
    """Units of each hidden layer of the policy and of the value network."""

    activation: Activation = "tanh"
    """Non-linearity between layers."""

    normalize_observations: bool = False
    """Shift and scale each entry of the observations to mean 0 and standard deviation 1 by running
    statistics; needs a box of floats.
    """

    normalize_rewards: bool = False
    """Divide rewards by the running standard deviation of the discounted return."""


class A3cParameters(BuiltinParameters):
    """Asynchronous advantage actor-critic (Mnih et al. 2016, algorithm S3).

    Discrete, multi-discrete, multi-binary or box actions.

    Actor-learner processes with an environment each train shared parameters without a lock, on the
    CPU.
    """

    stochastic_policy: ClassVar[bool] = True
    action_spaces: ClassVar[tuple[ActionKind, ...]] = ALL_ACTION_SPACES

    name: Literal["a3c"] = "a3c"
    """Name of the agent."""

    processes: Annotated[int, Field(ge=1, le=64)] = 2
    """Actor-learner processes, each on a CPU of its own where there are enough.

    A resume is exact with 1, statistical with more.
    """

    learning_rate: LearningRate = 7e-4
    """RMSprop step size."""

    gamma: Discount = 0.99
    """Discount factor per env_step."""

    rollout_steps: Annotated[int, Field(ge=1, le=1_000_000)] = 5
    """Maximum env_steps of a process between two of its updates; the end of an episode ends them.
    """

    value_coefficient: Annotated[float, Field(ge=0, le=100)] = 0.25
    """Weight of the value loss, which is the squared error of V.

    The default is the 0.5 of PFRL, whose A3C halves that error.
    """

    entropy_coefficient: Annotated[float, Field(ge=0, le=100)] = 0.01
    """Weight of the entropy bonus."""

    rmsprop_decay: Annotated[float, Field(ge=0, lt=1)] = 0.99
    """Decay of the mean of squared gradients."""

    rmsprop_epsilon: Annotated[float, Field(gt=0, le=1)] = 0.1
    """Added to the mean of squared gradients, under the root."""

    max_grad_norm: Annotated[float, Field(gt=0)] | None = 40.0
    """Global gradient norm to clip to; `null` does not clip."""

    hidden_sizes: HiddenSizes = (64, 64)
    """Units of each hidden layer of the policy and of the value network."""

    activation: Activation = "tanh"
    """Non-linearity between layers."""


class ReinforceParameters(BuiltinParameters):
    """Policy gradient on whole episodes (Williams 1992), with a learned baseline where wanted.

    Discrete, multi-discrete, multi-binary or box actions.
    """

    stochastic_policy: ClassVar[bool] = True
    action_spaces: ClassVar[tuple[ActionKind, ...]] = ALL_ACTION_SPACES

    name: Literal["reinforce"] = "reinforce"
    """Name of the agent."""

    learning_rate: LearningRate = 1e-3
    """Adam step size."""

    gamma: Discount = 0.99
    """Discount factor per env_step."""

    episodes: Annotated[int, Field(ge=1, le=100_000)] = 8
    """Whole episodes collected per update."""

    baseline: bool = True
    """Subtract a learned value from the returns.

    Without it, the mean return of all steps where `normalize_advantages` is set.
    """

    normalize_advantages: bool = True
    """Shift and scale the weights of the gradient to mean 0 and standard deviation 1."""

    value_coefficient: Annotated[float, Field(ge=0, le=100)] = 0.5
    """Weight of the value loss, which is the mean squared error of V."""

    entropy_coefficient: Annotated[float, Field(ge=0, le=100)] = 0.0
    """Weight of the entropy bonus."""

    max_grad_norm: Annotated[float, Field(gt=0)] | None = 0.5
    """Global gradient norm to clip to; `null` does not clip."""

    hidden_sizes: HiddenSizes = (64, 64)
    """Units of each hidden layer of the policy and of the value network."""

    activation: Activation = "tanh"
    """Non-linearity between layers."""

    normalize_observations: bool = False
    """Shift and scale each entry of the observations to mean 0 and standard deviation 1 by running
    statistics; needs a box of floats.
    """

    normalize_rewards: bool = False
    """Divide rewards by the running standard deviation of the discounted return."""


class TrpoParameters(BuiltinParameters):
    """Trust region policy optimisation (Schulman et al. 2015).

    With generalised advantage estimation. Discrete, multi-discrete, multi-binary or box actions.
    """

    stochastic_policy: ClassVar[bool] = True
    action_spaces: ClassVar[tuple[ActionKind, ...]] = ALL_ACTION_SPACES

    name: Literal["trpo"] = "trpo"
    """Name of the agent."""

    learning_rate: LearningRate = 1e-3
    """Adam step size of the value function; the policy's step follows from `max_kl`."""

    gamma: Discount = 0.99
    """Discount factor per env_step."""

    gae_lambda: Discount = 0.95
    """Trace decay of generalised advantage estimation."""

    rollout_steps: Annotated[int, Field(ge=1, le=1_000_000)] = 256
    """Vector steps collected per iteration.

    Times `env.num_envs` gives the env_steps of a rollout.
    """

    max_kl: Annotated[float, Field(gt=0, le=10)] = 0.01
    """Bound of the mean KL divergence between the policies before and after an update (delta)."""

    damping: Annotated[float, Field(ge=0, le=10)] = 0.1
    """Added to the diagonal of the Fisher matrix."""

    conjugate_gradient_steps: Annotated[int, Field(ge=1, le=100)] = 10
    """Iterations towards the natural gradient."""

    line_search_steps: Annotated[int, Field(ge=1, le=100)] = 10
    """Step sizes that are tried, each half of the one before."""

    value_passes: Annotated[int, Field(ge=1, le=100)] = 5
    """Passes of the value function over each rollout."""

    value_minibatch_size: Annotated[int, Field(ge=1, le=1_000_000)] = 128
    """Transitions per update of the value function."""

    normalize_advantages: bool = True
    """Shift and scale the advantages of each rollout to mean 0 and standard deviation 1."""

    hidden_sizes: HiddenSizes = (64, 64)
    """Units of each hidden layer of the policy and of the value network."""

    activation: Activation = "tanh"
    """Non-linearity between layers."""

    normalize_observations: bool = False
    """Shift and scale each entry of the observations to mean 0 and standard deviation 1 by running
    statistics; needs a box of floats.
    """

    normalize_rewards: bool = False
    """Divide rewards by the running standard deviation of the discounted return."""


class RecurrentPpoParameters(BuiltinParameters):
    """PPO with an LSTM (Hochreiter & Schmidhuber 1997) before policy and value.

    For environments whose single observation does not show the whole state.
    """

    stochastic_policy: ClassVar[bool] = True
    action_spaces: ClassVar[tuple[ActionKind, ...]] = ALL_ACTION_SPACES

    name: Literal["recurrent_ppo"] = "recurrent_ppo"
    """Name of the agent."""

    learning_rate: LearningRate = 3e-4
    """Adam step size."""

    gamma: Discount = 0.99
    """Discount factor per env_step."""

    gae_lambda: Discount = 0.95
    """Trace decay of generalised advantage estimation."""

    rollout_steps: Annotated[int, Field(ge=1, le=1_000_000)] = 128
    """Vector steps collected per iteration.

    Times `env.num_envs` gives the env_steps of a rollout.
    """

    passes: Annotated[int, Field(ge=1, le=1_000)] = 4
    """Passes over each rollout."""

    minibatch_envs: Annotated[int, Field(ge=1, le=1_000_000)] = 4
    """Environments whose whole part of the rollout makes one update."""

    clip_range: Annotated[float, Field(gt=0, le=10)] = 0.2
    """Clipping of the probability ratio."""

    value_coefficient: Annotated[float, Field(ge=0, le=100)] = 0.5
    """Weight of the value loss, which is the mean squared error of V."""

    entropy_coefficient: Annotated[float, Field(ge=0, le=100)] = 0.0
    """Weight of the entropy bonus."""

    normalize_advantages: bool = True
    """Shift and scale the advantages of each minibatch to mean 0 and standard deviation 1."""

    target_kl: Annotated[float, Field(gt=0)] | None = None
    """Stop the passes over a rollout once the approximate KL divergence exceeds this.

    `null` never stops.
    """

    max_grad_norm: Annotated[float, Field(gt=0)] | None = 0.5
    """Global gradient norm to clip to; `null` does not clip."""

    hidden_sizes: HiddenSizes = (64,)
    """Units of each layer before the LSTM."""

    memory_units: Annotated[int, Field(ge=1, le=8192)] = 64
    """Units of the LSTM."""

    activation: Activation = "tanh"
    """Non-linearity between layers."""

    normalize_observations: bool = False
    """Shift and scale each entry of the observations to mean 0 and standard deviation 1 by running
    statistics; needs a box of floats.
    """

    normalize_rewards: bool = False
    """Divide rewards by the running standard deviation of the discounted return."""
