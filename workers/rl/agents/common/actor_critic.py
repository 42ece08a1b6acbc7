"""Policy and value as functions of one vector of parameters: what the on-policy agents share.

N samples, T vector steps of a rollout, B environments, A outputs of the policy network, P
parameters.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from workers.core.types import AgentContext, Array
from workers.rl.agents.common.advantages import ends_of, generalised
from workers.rl.agents.common.learning_state import Layouts
from workers.rl.agents.common.policies import Policy, policy_for
from workers.rl.networks.mlp import Activation, Mlp
from workers.rl.networks.nature_cnn import NatureCnn, is_image
from workers.rl.networks.observation_encoding import Encoding, encoding_of
from workers.rl.networks.parameter_layout import Layout, Parameters

H = TypeVar("H")


class RolloutBatch(NamedTuple):
    """Transitions to learn from."""

    observation: Tensor
    """[N, ...]"""
    action: Tensor
    """Raw [N, ...]"""
    log_probability: Tensor
    """float32 [N], by the policy that acted; 0 where the algorithm does not read it."""
    advantage: Tensor
    """float32 [N]"""
    value_target: Tensor
    """float32 [N]"""
    noise: tuple[Tensor, ...] = ()
    """Random numbers that the algorithm asked for."""

    def rows(self, places: Tensor) -> "RolloutBatch":
        """Returns the samples at int64 [n] `places`."""
        observation, action, log_probability, advantage, value_target = (
            column[places] for column in self[:5]
        )
        return RolloutBatch(observation, action, log_probability, advantage, value_target)


def standardised(weight: Tensor) -> Tensor:
    """Returns what weighs the gradient [...], shifted and scaled to mean 0 and standard deviation
    1.

    A single one stays as it is, as in Stable-Baselines3: less its own mean it would be 0, and the
    policy would never learn.
    """
    if weight.numel() < 2:
        return weight
    return (weight - weight.mean()) / (weight.std(correction=0) + 1e-8)


@dataclass(frozen=True)
class ActorCritic:
    """Networks of policy and value.

    Images are read by convolutions that both share; all else by a network for each.
    """

    policy: Policy
    encoding: Encoding
    actor: Mlp
    critic: Mlp
    trunk: NatureCnn | None = None
    layout: Layout = field(init=False)
    """Of all parameters."""

    def __post_init__(self) -> None:
        shared = {} if self.trunk is None else self.trunk.shapes()
        shapes = {
            **shared,
            **self.actor.shapes(),
            **self.critic.shapes(),
            **self.policy.extra_shapes,
        }
        object.__setattr__(self, "layout", Layout(shapes))

    def initial(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Returns orthogonal weights, whose gain is 0.01 for the last layer of the policy and 1 for
        that of the value, and zeros.
        """
        shared = {} if self.trunk is None else self.trunk.initial_orthogonal(generator, gain=2**0.5)
        heads = {
            **self.actor.initial_orthogonal(generator, gain=0.01),
            **self.critic.initial_orthogonal(generator, gain=1.0),
        }
        return {
            **shared,
            **heads,
            **{name: torch.zeros(shape) for name, shape in self.policy.extra_shapes.items()},
        }

    def features(self, parameters: Parameters, observation: Tensor) -> Tensor:
        """Returns what both networks read, float32 [N, features]."""
        return (
            self.encoding(observation)
            if self.trunk is None
            else self.trunk(parameters, observation)
        )

    def outputs(self, parameters: Parameters, observation: Tensor) -> Tensor:
        """Returns the outputs of the policy network float32 [N, A]."""
        return self.actor(parameters, self.features(parameters, observation))

    def values(self, parameters: Parameters, observation: Tensor) -> Tensor:
        """Returns V float32 [N]."""
        return self.critic(parameters, self.features(parameters, observation)).squeeze(-1)

    def __call__(self, parameters: Parameters, observation: Tensor) -> tuple[Tensor, Tensor]:
        """Returns outputs float32 [N, A] and V float32 [N]."""
        features = self.features(parameters, observation)
        return self.actor(parameters, features), self.critic(parameters, features).squeeze(-1)

    def outputs_array(self, parameters: Mapping[str, Array], observation: Array) -> Array | None:
        """Returns the outputs of the policy network float32 [..., N, A].

        `None` for images, which torch is quicker with.
        """
        if self.trunk is not None:
            return None
        return self.actor.forward_numpy(parameters, self.encoding.forward_numpy(observation))


def actor_critic(
    context: AgentContext, agent: str, hidden_sizes: tuple[int, ...], activation: Activation
) -> ActorCritic:
    """Returns the networks for an agent's spaces.

    Raises DefinitionError, which names the agent, if one does not fit.
    """
    policy, encoding = (
        policy_for(context.action_space, agent),
        encoding_of(context.observation_space),
    )
    if is_image(context.observation_space):
        trunk = NatureCnn("features", encoding.shape, hidden_sizes or (512,), activate_last=True)
        return ActorCritic(
            policy,
            encoding,
            Mlp("policy", (trunk.outputs, policy.outputs)),
            Mlp("value", (trunk.outputs, 1)),
            trunk,
        )
    actor = Mlp("policy", (encoding.size, *hidden_sizes, policy.outputs), activation)
    critic = Mlp("value", (encoding.size, *hidden_sizes, 1), activation)
    return ActorCritic(policy, encoding, actor, critic)


@dataclass(frozen=True)
class OnPolicyMath(Generic[H]):
    """What the mathematics of the on-policy agents have in common: how they act, and what a rollout
    becomes.

    A state has a field `parameters`, which holds all parameters of the networks unless an algorithm
    says otherwise.
    """

    model: ActorCritic
    hyper: H
    gamma: float
    trace: float
    """lambda of generalised advantages."""
    actor: ClassVar[str] = "parameters"
    reads_log_probability: ClassVar[bool] = True
    """Whether updates compare the policy with the one that acted."""

    @property
    def layouts(self) -> Layouts:
        """Of the parameters."""
        return {"parameters": self.model.layout}

    def named(self, state: Any) -> Parameters:
        """Returns all parameters of a state by name."""
        return self.model.layout.split(state.parameters)

    def prepared(self, state: Any, rollout: Mapping[str, Array]) -> RolloutBatch:
        """Returns the active transitions of a rollout with what is learnt from them, on the device
        of the state.

        The value of a step's successor is that of the next row, but the one of the true successor
        where the episode was cut or the next row is none of its own; in terminal states it is 0.

        Args:
            state: The state that acted.
            rollout: `observation`, `action` (raw), `reward`, `terminated`, `truncated`,
                `next_observation` and `active`, each [T, B, ...].
        """
        device = state.parameters.device
        ends = ends_of(rollout["terminated"], rollout["truncated"], rollout["active"])
        observation = torch.from_numpy(rollout["observation"]).to(device).flatten(0, 1)
        action = torch.from_numpy(rollout["action"]).to(device).flatten(0, 1)
        successors = torch.from_numpy(rollout["next_observation"][ends.foreign]).to(device)
        with torch.no_grad():
            log_probability, values, foreign = self.judged(state, observation, action, successors)
        value = values.cpu().numpy().reshape(ends.active.shape)
        advantage = generalised(
            rollout["reward"], value, foreign.cpu().numpy(), ends, (self.gamma, self.trace)
        )
        weights, targets = (
            torch.from_numpy(array.reshape(-1)).to(device)
            for array in (advantage, advantage + value)
        )
        batch = RolloutBatch(observation, action, log_probability, weights, targets)
        return (
            batch
            if ends.active.all()
            else batch.rows(torch.from_numpy(np.flatnonzero(ends.active)).to(device))
        )

    def judged(
        self, state: Any, observation: Tensor, action: Tensor, successors: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the logarithms of the probabilities of raw actions [N], and V of the observations
        [N] and of others [M].

        The first are zeros where updates do not read them.
        """
        parameters = self.named(state)
        others = self.model.values(parameters, successors)
        if not self.reads_log_probability:
            values = self.model.values(parameters, observation)
            return torch.zeros_like(values), values, others
        outputs, values = self.model(parameters, observation)
        return self.model.policy.log_probability(parameters, outputs, action), values, others

    def noise(self, generator: np.random.Generator, count: int) -> tuple[Array, ...]:
        """Returns the random numbers of an update with `count` samples: none."""
        del generator, count
        return ()

    def acting_noise(
        self, generator: np.random.Generator, shape: tuple[int, ...]
    ) -> tuple[Array, ...]:
        """Returns the random numbers of actions, [*shape, A]."""
        return (self.model.policy.noise(generator, shape),)

    def act(self, parameters: Parameters, observation: Tensor, noise: tuple[Tensor, ...]) -> Tensor:
        """Returns raw actions [N, ...]; without noise the likeliest ones."""
        outputs = self.model.outputs(parameters, observation)
        return self.model.policy.sample_tensor(parameters, outputs, noise[0] if noise else None)

    def act_arrays(
        self, parameters: Mapping[str, Array], observation: Array, noise: tuple[Array, ...]
    ) -> Array | None:
        """Returns what `act` does, in numpy; `None` for images."""
        outputs = self.model.outputs_array(parameters, observation)
        return (
            None
            if outputs is None
            else self.model.policy.sample(parameters, outputs, noise[0] if noise else None)
        )
