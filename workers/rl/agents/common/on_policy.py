"""Common parts of on-policy algorithms: advantages, batches of a rollout, and a gradient step.

N samples, T vector steps of a rollout, B environments, A outputs of the policy network, P
parameters, M members of a pack.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from workers.acceleration.update_runner import Gradient
from workers.core.types import Array
from workers.rl.agents.common.actor_critic import ActorCritic
from workers.rl.agents.common.algorithm import UpdateCycle, UpdateResult
from workers.rl.agents.common.learning_state import Layouts
from workers.rl.agents.common.optimizers import (
    AdamState,
    RmspropState,
    adam,
    adam_start,
    clip_to_norm,
)
from workers.rl.networks.parameter_layout import Parameters

H = TypeVar("H")
Floats = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]


class RolloutBatch(NamedTuple):
    """Transitions to learn from."""

    observation: Tensor
    """[N, ...]"""
    action: Tensor
    """Raw [N, ...]"""
    log_probability: Tensor
    """float32 [N]: log-probability by the policy that acted; 0 if updates do not need it."""
    advantage: Tensor
    """float32 [N]"""
    value_target: Tensor
    """float32 [N]"""
    noise: tuple[Tensor, ...] = ()
    """Random numbers that the algorithm draws for an update."""

    def rows(self, places: Tensor) -> "RolloutBatch":
        """Returns the samples at `places`, int64 [n], or [M, n] of the batches of a pack."""
        index: tuple[Tensor, ...] = (places,)
        if places.dim() == 2:
            index = torch.arange(len(places), device=places.device).unsqueeze(1), places
        return RolloutBatch._make((*(column[index] for column in self[:5]), ()))


def standardise(weight: Tensor) -> Tensor:
    """Returns the weights of the gradient [...], scaled to mean 0 and standard deviation 1.

    A single weight is returned unchanged, as in Stable-Baselines3: minus its own mean it would be
    0, and the policy would never learn.
    """
    if weight.numel() < 2:
        return weight
    return (weight - weight.mean()) / (weight.std(correction=0) + 1e-8)


def discounted_sums(terms: Floats, ended: Flags, decay: float) -> Floats:
    """Returns the discounted sums of the terms up to the end of each episode, float32 [T, B].

    The sum of step t is that over k of decay^k * terms[t + k].

    With temporal-difference errors and gamma * lambda these are generalised advantages (Schulman et
    al. 2016, equation 16); with rewards and gamma they are returns to go.

    Args:
        terms: float32 [T, B].
        ended: bool [T, B]: the episode ended with this step, or the slot was inactive.
        decay: Factor per step.
    """
    carried = decay * (~ended).astype(np.float32)
    result = np.empty_like(terms)
    running = np.zeros_like(terms[0])
    for t in range(len(terms) - 1, -1, -1):
        running = carried[t] * running + terms[t]
        result[t] = running
    return result


def complete_episode_mask(ended: Flags) -> Flags:
    """Returns which steps belong to an episode that ends within the rollout, bool [T, B].

    Args:
        ended: bool [T, B]: an episode ended with this step.
    """
    complete: Flags = np.logical_or.accumulate(ended[::-1], axis=0)[::-1]
    return complete


class EpisodeEnds(NamedTuple):
    """Where the episodes of a rollout end."""

    ended: Flags
    """bool [T, B]: no later reward belongs to this step."""
    terminated: Flags
    """bool [T, B]: the value of the successor is 0."""
    bootstrap_mask: Flags
    """bool [T, B]: steps whose successor value is not the next row's: at truncations, before an
    inactive slot, and in the last row.
    """
    active: Flags
    """bool [T, B]: false where a slot was inactive."""


def episode_ends(rollout: Mapping[str, Array]) -> EpisodeEnds:
    """Returns where the episodes of a rollout end.

    Args:
        rollout: `terminated`, `truncated` and `active`, bool [T, B] each.
    """
    terminated, truncated, active = (
        rollout[name] for name in ("terminated", "truncated", "active")
    )
    bootstrap_mask = truncated.copy()
    bootstrap_mask[-1] = True
    bootstrap_mask[:-1] |= ~active[1:]
    return EpisodeEnds(
        terminated | truncated | ~active, terminated & active, bootstrap_mask, active
    )


def generalised_advantages(
    reward: Floats,
    value: Floats,
    bootstrap_value: Floats,
    ends: EpisodeEnds,
    *,
    gamma: float,
    gae_lambda: float,
) -> Floats:
    """Returns generalised advantages float32 [T, B], 0 where a slot was inactive.

    Schulman et al. 2016, equations 9 and 16. With lambda = 1 they are the n-step advantages of
    Mnih et al. 2016: all rewards up to the end of the rollout, then the last successor's value.

    Args:
        reward: float32 [T, B].
        value: V of each observation, float32 [T, B].
        bootstrap_value: V of the successors where `ends.bootstrap_mask` is true, row by row.
        ends: Ends of the episodes.
        gamma: Discount factor.
        gae_lambda: Trace decay.
    """
    successor = np.roll(value, -1, 0)
    successor[ends.bootstrap_mask] = bootstrap_value
    successor[ends.terminated] = 0.0
    delta = (reward + np.float32(gamma) * successor - value) * ends.active
    return discounted_sums(delta, ends.ended, gamma * gae_lambda)


@dataclass(frozen=True)
class OnPolicyMath(UpdateCycle, ABC, Generic[H]):
    """Base of the on-policy algorithms: acting, and conversion of a rollout to a batch.

    A state has a field `parameters`, which by default holds all parameters of the networks.
    """

    model: ActorCritic
    hyper: H
    gamma: float
    gae_lambda: float
    report_names: ClassVar[tuple[str, ...]]
    actor: ClassVar[str] = "parameters"
    reads_log_probability: ClassVar[bool] = True
    """Whether updates compare the policy with the one that acted."""

    @property
    def estimates_values(self) -> bool:
        """Whether advantages are differences to a learned value function."""
        return True

    @property
    def layouts(self) -> Layouts:
        """Layout of each vector of parameters in a state."""
        return {"parameters": self.model.layout}

    @abstractmethod
    def start(self, generator: torch.Generator) -> Any:
        """Returns the state before the first update, on the CPU."""

    @abstractmethod
    def update(self, gradient: Gradient, state: Any, batch: RolloutBatch) -> UpdateResult[Any]:
        """Returns the state after one update."""

    def parameters_by_name(self, state: Any) -> Parameters:
        """Returns all parameters of a state by name."""
        return self.model.layout.split(state.parameters)

    def prepare(
        self, state: Any, rollout: Mapping[str, Array], members: int | None = None
    ) -> RolloutBatch:
        """Returns the active transitions of a rollout with advantages and value targets.

        The value of a step's successor is that of the next row, except where
        `EpisodeEnds.bootstrap_mask` is true: there the successor itself is evaluated. The value of
        a terminal state is 0.

        Args:
            state: The state that acted; the batch is on its device.
            rollout: `observation`, `action` (raw), `reward`, `terminated`, `truncated`,
                `next_observation` and `active`, each [T, B, ...].
            members: M, for a pack: `state` is stacked [M, ...], the rollout is [T, M * B, ...] with
                all slots active, and the batch is [M, N, ...]. `None` for a single run.
        """
        device, ends = state.parameters.device, episode_ends(rollout)
        index = _bootstrap_index(_flatten_steps(ends.bootstrap_mask, members))
        arrays = [_flatten_steps(rollout[name], members) for name in ("observation", "action")]
        successors = _flatten_steps(rollout["next_observation"], members)[index]
        evaluate = self.evaluate if members is None else torch.func.vmap(self.evaluate)
        observation, action, others = (
            torch.from_numpy(array).to(device) for array in (*arrays, successors)
        )
        with torch.no_grad():
            log_probability, values, bootstrap = evaluate(state, observation, action, others)
        scattered = np.zeros(values.shape, np.float32)
        scattered[index] = bootstrap.cpu().numpy()
        value, successor_value = (
            _unflatten_steps(array, len(ends.active)) for array in (values.cpu().numpy(), scattered)
        )
        advantage = generalised_advantages(
            rollout["reward"],
            value,
            successor_value[ends.bootstrap_mask],
            ends,
            gamma=self.gamma,
            gae_lambda=self.gae_lambda,
        )
        advantages, targets = (
            torch.from_numpy(_flatten_steps(array, members)).to(device)
            for array in (advantage, advantage + value)
        )
        batch = RolloutBatch(observation, action, log_probability, advantages, targets)
        if members is not None or ends.active.all():
            return batch
        return batch.rows(torch.from_numpy(np.flatnonzero(ends.active)).to(device))

    def evaluate(
        self, state: object, observation: Tensor, action: Tensor, successors: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Evaluates policy and value function on the observations of a rollout.

        Returns:
            Log-probabilities of the raw actions [N], zeros where updates do not read them; V of
            the observations [N]; V of the successors [K].
        """
        parameters = self.parameters_by_name(state)
        successor_values = self.model.values(parameters, successors)
        if not self.reads_log_probability:
            values = self.model.values(parameters, observation)
            return torch.zeros_like(values), values, successor_values
        outputs, values = self.model(parameters, observation)
        log_probability = self.model.policy.log_probability(parameters, outputs, action)
        return log_probability, values, successor_values

    def acting_noise(
        self, generator: np.random.Generator, shape: tuple[int, ...]
    ) -> tuple[Array, ...]:
        """Returns the random numbers of actions, [*shape, A]."""
        return (self.model.policy.noise(generator, shape),)

    def act(self, parameters: Parameters, observation: Tensor, noise: tuple[Tensor, ...]) -> Tensor:
        """Returns raw actions [N, ...]; without noise the most probable ones."""
        outputs = self.model.outputs(parameters, observation)
        return self.model.policy.sample_tensor(parameters, outputs, noise[0] if noise else None)

    def act_arrays(
        self, parameters: Mapping[str, Array], observation: Array, noise: tuple[Array, ...]
    ) -> Array | None:
        """Computes `act` in numpy; returns `None` for images."""
        outputs = self.model.outputs_array(parameters, observation)
        if outputs is None:
            return None
        return self.model.policy.sample(parameters, outputs, noise[0] if noise else None)


class PolicyState(NamedTuple):
    """Learning state of a policy gradient algorithm; an update returns a new one."""

    parameters: Tensor
    """float32 [P]: theta, parameters of policy and value network."""
    optimizer: AdamState | RmspropState


class PolicyGradient(OnPolicyMath[H]):
    """Base of the algorithms whose update is one gradient step on a loss of all parameters."""

    adam_epsilon: ClassVar[float] = 1e-8

    @abstractmethod
    def loss(self, parameters: Parameters, batch: Any) -> tuple[Tensor, tuple[Tensor]]:
        """Returns the loss [], and the values of `report_names` except the last."""

    def start(self, generator: torch.Generator) -> PolicyState:
        """Returns the state before the first update."""
        vector = self.model.layout.join(self.model.initial_parameters(generator))
        return PolicyState(vector, self.optimizer_start(vector))

    def optimizer_start(self, vector: Tensor) -> AdamState | RmspropState:
        """Returns the optimiser's state before the first update of parameters [P]; here Adam's."""
        hyper: Any = self.hyper
        return adam_start(vector, hyper.learning_rate)

    def optimizer_step(
        self, parameters: Tensor, grad: Tensor, optimizer: Any
    ) -> tuple[Tensor, AdamState | RmspropState]:
        """Returns parameters [P] and optimiser state after a step with the clipped gradient [P]."""
        return adam(parameters, grad, optimizer, epsilon=self.adam_epsilon)

    def update(
        self, gradient: Gradient, state: PolicyState, batch: Any
    ) -> UpdateResult[PolicyState]:
        """Makes a gradient step; the last value of the report is the norm of the gradient."""
        hyper: Any = self.hyper
        grad, _, (report,) = gradient(
            lambda vector: self.loss(self.model.layout.split(vector), batch), state.parameters
        )
        grad, norm = clip_to_norm(grad, hyper.max_grad_norm)
        parameters, optimizer = self.optimizer_step(state.parameters, grad, state.optimizer)
        return UpdateResult(
            PolicyState(parameters, optimizer),
            torch.cat((report, norm.unsqueeze(0))),
            batch.advantage,
        )


def _flatten_steps(array: Array, members: int | None) -> Array:
    """Returns an array [T, B, ...] as [T * B, ...], or [T, M * B, ...] as [M, T * B, ...]."""
    rest = array.shape[2:]
    if members is None:
        return array.reshape(-1, *rest)
    split = array.reshape(len(array), members, -1, *rest).swapaxes(0, 1)
    return np.ascontiguousarray(split).reshape(members, -1, *rest)


def _unflatten_steps(array: Array, steps: int) -> Array:
    """Inverse of `_flatten_steps`: returns [T * B] as [T, B], or [M, T * B] as [T, M * B]."""
    members = array.shape[0] if array.ndim == 2 else 1
    return np.ascontiguousarray(array.reshape(members, steps, -1).swapaxes(0, 1)).reshape(steps, -1)


def _bootstrap_index(mask: Flags) -> tuple[Array, ...]:
    """Returns the index of the true entries of a mask [N] or [M, N].

    In a pack the entries of each member are padded with false ones to the same number: `vmap` needs
    arrays of one shape. The values of the padding are never read.
    """
    if mask.ndim == 1:
        return (np.flatnonzero(mask),)
    places = np.argsort(~mask, axis=1, kind="stable")[:, : mask.sum(1).max()]
    return np.arange(len(mask))[:, np.newaxis], places
