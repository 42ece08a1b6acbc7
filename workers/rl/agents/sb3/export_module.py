"""The greedy policy of an algorithm of Stable-Baselines3 as a module that can be exported."""

import copy
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.preprocessing import preprocess_obs
from torch import Tensor, nn

from workers.rl.agents.sb3.observations import Observations


class GreedyModule(nn.Module):
    """Maps observations [N, ...], in the form that Palestra stores, to greedy actions [N, ...].

    Args:
        model: The algorithm; the networks of its policy are copied to the CPU.
        observations: Converts stored observations for the algorithm.
    """

    low: Tensor
    high: Tensor

    def __init__(self, model: BaseAlgorithm, observations: Observations) -> None:
        super().__init__()
        features, trunk, self._is_squashed = _networks(model)
        self.features, self.trunk = (copy.deepcopy(network).cpu() for network in (features, trunk))
        self._observations = observations
        self._seen = model.observation_space
        self._normalizes_images = bool(model.policy.normalize_images)
        self._is_scaled = bool(model.policy.squash_output)
        self._space = model.action_space
        if isinstance(self._space, spaces.Box):
            self.register_buffer("low", torch.as_tensor(self._space.low))
            self.register_buffer("high", torch.as_tensor(self._space.high))
        self.eval()

    def forward(self, observation: Tensor) -> Tensor:
        seen = _move_channels_first(self._observations.split(observation), self._seen)
        features = self.features(
            preprocess_obs(seen, self._seen, normalize_images=self._normalizes_images)
        )
        return self._decide(self.trunk(features))

    def _decide(self, outputs: Tensor) -> Tensor:
        match self._space:
            case spaces.Box(shape=shape):
                actions = outputs.reshape(-1, *shape)
                actions = torch.tanh(actions) if self._is_squashed else actions
                if self._is_scaled:
                    actions = self.low + 0.5 * (actions + 1.0) * (self.high - self.low)
                return torch.maximum(torch.minimum(actions.to(self.low.dtype), self.high), self.low)
            case spaces.MultiDiscrete(nvec=sizes):
                return torch.stack(
                    [part.argmax(1) for part in torch.split(outputs, sizes.tolist(), 1)], 1
                )
            case spaces.MultiBinary():
                return (outputs > 0).to(torch.int64)
        return outputs.argmax(1)


def _networks(model: BaseAlgorithm) -> tuple[nn.Module, nn.Module, bool]:
    """Returns the network of the features, the head, and whether tanh follows the head."""
    policy: Any = model.policy
    if isinstance(policy, ActorCriticPolicy):
        return (
            policy.pi_features_extractor,
            nn.Sequential(policy.mlp_extractor.policy_net, policy.action_net),
            policy.squash_output,
        )
    if hasattr(policy, "q_net"):
        return policy.q_net.features_extractor, policy.q_net.q_net, False
    actor = policy.actor
    if hasattr(actor, "latent_pi"):
        return actor.features_extractor, nn.Sequential(actor.latent_pi, actor.mu), True
    return actor.features_extractor, actor.mu, False


def _move_channels_first(seen: Any, space: spaces.Space[object]) -> Any:
    """Moves the channels of images to the front if the algorithm's space has them in front."""
    if isinstance(space, spaces.Dict):
        return {key: _move_channels_first(seen[key], inner) for key, inner in space.spaces.items()}
    has_channels_last = (
        isinstance(space, spaces.Box)
        and len(space.shape) == 3
        and tuple(seen.shape[1:]) != space.shape
    )
    return seen.permute(0, 3, 1, 2) if has_channels_last else seen
