"""Policy and value networks of on-policy agents.

N samples, A outputs of the policy network.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from workers.core.types import AgentContext, Array
from workers.rl.agents.common.policies import Policy, make_policy
from workers.rl.networks.mlp import Activation, Mlp
from workers.rl.networks.nature_cnn import NatureCnn, image_features, is_image
from workers.rl.networks.observation_encoding import Encoding, encoding_of
from workers.rl.networks.parameter_layout import Layout, Parameters


@dataclass(frozen=True)
class ActorCritic:
    """Policy and value network.

    For images both share the convolutions; for other observations they share no layers.
    """

    policy: Policy
    encoding: Encoding
    actor: Mlp
    critic: Mlp
    trunk: NatureCnn | None = None
    layout: Layout = field(init=False)
    """Layout of all parameters."""

    def __post_init__(self) -> None:
        shared = {} if self.trunk is None else self.trunk.shapes()
        heads = {**self.actor.shapes(), **self.critic.shapes()}
        shapes = {**shared, **heads, **self.policy.extra_shapes}
        object.__setattr__(self, "layout", Layout(shapes))

    def initial_parameters(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Returns orthogonal weights and zero biases.

        The gain of the last layer is 0.01 for the policy and 1 for the value.
        """
        shared = {} if self.trunk is None else self.trunk.draw_orthogonal(generator, gain=2**0.5)
        return {
            **shared,
            **self.actor.draw_orthogonal(generator, gain=0.01),
            **self.critic.draw_orthogonal(generator, gain=1.0),
            **{name: torch.zeros(shape) for name, shape in self.policy.extra_shapes.items()},
        }

    def features(self, parameters: Parameters, observation: Tensor) -> Tensor:
        """Returns the inputs of both networks, float32 [N, features]."""
        if self.trunk is None:
            return self.encoding(observation)
        return self.trunk(parameters, observation)

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

        Computed in numpy; `None` for images, for which torch is faster.
        """
        if self.trunk is not None:
            return None
        return self.actor.forward_numpy(parameters, self.encoding.forward_numpy(observation))

    def acting_outputs(
        self, tensors: Parameters, arrays: Mapping[str, Array], observation: Array
    ) -> Array:
        """Returns the outputs of the policy network float32 [N, A], by numpy or else by torch.

        Args:
            tensors: Parameters by name, for torch.
            arrays: The same parameters as arrays.
            observation: [N, ...]
        """
        outputs = self.outputs_array(arrays, observation)
        if outputs is None:
            with torch.inference_mode():
                outputs = self.outputs(tensors, torch.from_numpy(observation)).numpy()
        return outputs


def actor_critic(
    context: AgentContext, agent: str, hidden_sizes: tuple[int, ...], activation: Activation
) -> ActorCritic:
    """Returns the networks for an agent's spaces.

    Raises:
        DefinitionError: If the agent does not support a space; the message names the agent.
    """
    policy = make_policy(context.action_space, agent)
    encoding = encoding_of(context.observation_space)
    if is_image(context.observation_space):
        trunk = image_features("features", context.observation_space, hidden_sizes or (512,))
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
