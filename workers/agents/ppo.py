"""Proximal policy optimisation (Schulman et al. 2017) with generalised advantage estimation (Schulman et al. 2016).

Reads from top to bottom: the mathematics as pure functions, then the agent that feeds them. Policy and value network share one vector of
parameters. T vector steps of a rollout, B environments, N transitions of a batch, P parameters, A outputs of the policy network.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from palestra.contract.agents import PpoParameters
from workers.agents.adam import AdamState, adam, clip_to_norm
from workers.agents.base import TrainingSwitch, Weights, torch_generator
from workers.agents.gradients import Gradient, runnable
from workers.agents.policies import Policy, policy_for
from workers.core.rng import derive_generator, generator_state, load_generator_state
from workers.core.types import AgentContext, Array, CollectPlan, Experience, LearnReport, LearnSchedule, StateTree
from workers.memory.ring import Fields
from workers.memory.rollout import Rollout
from workers.networks.acting import ActingModule
from workers.networks.encoding import Encoding, encoding_of
from workers.networks.layout import Layout, Parameters
from workers.networks.mlp import Mlp

REPORT_NAMES: Final = ("loss/total", "loss/policy", "loss/value", "policy/entropy", "policy/kl", "policy/clip_fraction", "gradient/norm")
_KL: Final = REPORT_NAMES.index("policy/kl")
_ADAM_EPSILON: Final = 1e-5
"""As in the reference implementation of the paper."""


class Batch(NamedTuple):
    """Transitions to learn from."""

    observation: Tensor
    """[N, ...]"""
    raw_action: Tensor
    """[N, ...]"""
    log_probability: Tensor
    """float32 [N], by the policy that acted."""
    advantage: Tensor
    """float32 [N]"""
    value_target: Tensor
    """float32 [N]"""


def advantages(delta: Tensor, ended: Tensor, decay: float) -> Tensor:
    """Returns generalised advantages float32 [T, B]: the sum over k of decay^k * delta[t + k] up to the end of the episode.

    Args:
        delta: Temporal-difference errors float32 [T, B].
        ended: bool [T, B]: the episode ended with this step, or the slot waited.
        decay: gamma * lambda.
    """
    carried = decay * (~ended).float()
    running = torch.zeros_like(delta[0])
    result = torch.empty_like(delta)
    for t in range(len(delta) - 1, -1, -1):
        running = torch.addcmul(delta[t], carried[t], running)
        result[t] = running
    return result


@dataclass(frozen=True)
class PpoMath:
    """The mathematics of one definition: pure functions of tensors."""

    actor: Mlp
    critic: Mlp
    policy: Policy
    encoding: Encoding
    layout: Layout
    hyper: PpoParameters

    def outputs(self, parameters: Parameters, observation: Tensor) -> Tensor:
        """Returns the outputs of the policy network float32 [N, A]."""
        return self.actor(parameters, self.encoding(observation))

    def values(self, parameters: Parameters, observation: Tensor) -> Tensor:
        """Returns V float32 [N]."""
        return self.critic(parameters, self.encoding(observation)).squeeze(1)

    def greedy(self, parameters: Parameters, observation: Tensor) -> Tensor:
        """Returns the likeliest actions of the space [N, ...]."""
        return self.policy.mode(self.outputs(parameters, observation))

    def loss(self, parameters: Parameters, batch: Batch) -> tuple[Tensor, tuple[Tensor]]:
        """Returns the clipped surrogate loss with value loss and entropy bonus [], and the values of `REPORT_NAMES` but the last [6]."""
        hyper, advantage = self.hyper, batch.advantage
        if hyper.normalize_advantages:
            advantage = (advantage - advantage.mean()) / (advantage.std(correction=0) + 1e-8)
        outputs = self.outputs(parameters, batch.observation)
        log_ratio = self.policy.log_probability(parameters, outputs, batch.raw_action) - batch.log_probability
        ratio = log_ratio.exp()
        clipped = ratio.clamp(1 - hyper.clip_range, 1 + hyper.clip_range)
        policy_loss = -torch.minimum(ratio * advantage, clipped * advantage).mean()
        value_loss = 0.5 * (self.values(parameters, batch.observation) - batch.value_target).square().mean()
        entropy = self.policy.entropy(parameters, outputs).mean()
        total = policy_loss + hyper.value_coefficient * value_loss - hyper.entropy_coefficient * entropy
        kl = (ratio - 1 - log_ratio).mean()  # never negative: http://joschu.net/blog/kl-approx.html
        fraction = ((ratio - 1).abs() > hyper.clip_range).float().mean()
        return total, (torch.stack((total, policy_loss, value_loss, entropy, kl, fraction)).detach(),)

    def update(self, gradient: Gradient, parameters: Tensor, optimizer: AdamState, batch: Batch) -> tuple[Tensor, AdamState, Tensor]:
        """Returns parameters [P] and optimiser state after one update, and the values of `REPORT_NAMES` [7]."""
        slope, _, (report,) = gradient(lambda vector: self.loss(self.layout.split(vector), batch), parameters)
        slope, norm = clip_to_norm(slope, self.hyper.max_grad_norm)
        parameters, optimizer = adam(parameters, slope, optimizer, epsilon=_ADAM_EPSILON)
        return parameters, optimizer, torch.cat((report, norm.unsqueeze(0)))

    def batch_of(self, parameters: Parameters, rollout: Mapping[str, Tensor]) -> Batch:
        """Returns the active transitions of a rollout with what is learnt from them.

        The value of a step's successor is that of the next row, but the one of the true successor where the episode was cut or the next
        row is none of its own; in terminal states it is 0.

        Args:
            parameters: Those that acted.
            rollout: `observation`, `raw_action`, `reward`, `terminated`, `truncated`, `next_observation` and `active`, each [T, B, ...].
        """
        observation, active, terminated = rollout["observation"], rollout["active"], rollout["terminated"] & rollout["active"]
        value = self.values(parameters, observation.flatten(0, 1)).view(active.shape)
        ended = rollout["terminated"] | rollout["truncated"] | ~active
        foreign = rollout["truncated"].clone()
        foreign[-1] = True
        foreign[:-1] |= ~active[1:]
        next_value = value.roll(-1, 0)
        next_value[foreign] = self.values(parameters, rollout["next_observation"][foreign])
        delta = rollout["reward"] + self.hyper.gamma * next_value.masked_fill(terminated, 0.0) - value
        advantage = advantages(delta * active, ended, self.hyper.gamma * self.hyper.gae_lambda)
        raw = rollout["raw_action"][active]
        log_probability = self.policy.log_probability(parameters, self.outputs(parameters, observation[active]), raw)
        return Batch(observation[active], raw, log_probability, advantage[active], (advantage + value)[active])


class PpoAgent:
    """Acts by sampling its policy, gathers a rollout and learns from it in several passes over shuffled minibatches.

    Args:
        hyper: Hyperparameters.
        context: Spaces, seed and device.

    Raises:
        DefinitionError: If a space does not fit.
    """

    report_names = REPORT_NAMES

    def __init__(self, hyper: PpoParameters, context: AgentContext) -> None:
        policy, encoding = policy_for(context.action_space), encoding_of(context.observation_space)
        actor = Mlp("policy", (encoding.size, *hyper.hidden_sizes, policy.outputs), hyper.activation)
        critic = Mlp("value", (encoding.size, *hyper.hidden_sizes, 1), hyper.activation)
        layout = Layout({**actor.shapes(), **critic.shapes(), **policy.extra_shapes})
        generator = torch_generator(context.seed)
        initial = {**actor.initial_orthogonal(generator, gain=0.01), **critic.initial_orthogonal(generator, gain=1.0)}
        initial.update({name: torch.zeros(shape) for name, shape in policy.extra_shapes.items()})
        self._hyper = hyper
        self._num_envs = context.num_envs
        self._policy = policy
        self._math = PpoMath(actor, critic, policy, encoding, layout, hyper)
        self._update = runnable(self._math.update, mode=context.compile)
        self._device = torch.device(context.device)
        self._weights = Weights(layout, initial, hyper.learning_rate, self._device)
        self._generator = derive_generator(context.seed, "agent/explore")
        self._shuffler = derive_generator(context.seed, "agent/shuffle")
        row, flag = (encoding.shape, encoding.dtype), ((), np.bool_)
        fields: Fields = {"observation": row, "raw_action": (policy.raw_shape, policy.raw_dtype), "reward": ((), np.float32)}
        flags: Fields = {"terminated": flag, "truncated": flag, "next_observation": row, "active": flag}
        self.memory = Rollout(hyper.rollout_steps, context.num_envs, {**fields, **flags})
        self._training = TrainingSwitch()
        self._raw_actions: list[Array] = []

    # Actor

    def act(self, observation: Array, *, explore: bool) -> Array:
        """Returns actions [B, ...]: drawn from the policy, or its mode without a random number."""
        parameters = self._weights.named
        with torch.inference_mode():
            if not explore:
                mode: Array = self._math.greedy(parameters, self._tensor(observation)).cpu().numpy()
                return mode
            raw = self._policy.sample(parameters, self._math.outputs(parameters, self._tensor(observation)), self._generator)
        self._raw_actions.append(raw)
        return self._policy.to_space(raw)

    # Learner

    @property
    def collect_plan(self) -> CollectPlan:
        """A whole rollout."""
        return CollectPlan(vector_steps=self._hyper.rollout_steps)

    @property
    def learn_schedule(self) -> LearnSchedule:
        """All passes after each rollout."""
        size = self._hyper.rollout_steps * self._num_envs
        return LearnSchedule(size, self._hyper.passes * -(-size // self._hyper.minibatch_size))

    def observe(self, experience: Experience) -> None:
        """Copies the transitions into the rollout.

        The raw actions are those drawn by `act` since the last call; for experience of another origin they follow from its actions.
        """
        drawn, self._raw_actions = self._raw_actions, []
        if not self._training.on:
            return
        shape = experience.terminated.shape
        raw = np.stack(drawn) if len(drawn) == shape[0] else self._raw_of(experience.action)
        active = np.ones(shape, np.bool_) if experience.active is None else experience.active
        flags = (experience.terminated, experience.truncated, experience.next_observation, active)
        self.memory.extend((experience.observation, raw, experience.reward, *flags))

    def learn(self, updates: int) -> LearnReport:
        """Learns from the whole rollout and empties it; fewer updates than asked for where the policy moved too far (`target_kl`)."""
        if not self._training.on or updates < 1 or not len(self.memory):
            return LearnReport(0)
        with torch.no_grad():
            rollout = {name: self._tensor(array) for name, array in self.memory.contents().items()}
            batch = self._math.batch_of(self._weights.named, rollout)
        self.memory.clear()
        vector, optimizer = self._weights.vector, self._weights.optimizer
        reports: list[Tensor] = []
        for minibatches in self._passes(batch, updates):
            for minibatch in minibatches:
                vector, optimizer, report = self._update(vector, optimizer, minibatch)
                reports.append(report)
            if self._moved_too_far(reports[-len(minibatches) :]):
                break
        self._weights.vector, self._weights.optimizer = vector, optimizer
        return LearnReport(len(reports), torch.stack(reports).mean(0))

    @property
    def learning_rate(self) -> float:
        """Step size of the next update."""
        return self._weights.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self._weights.learning_rate = value

    def metrics(self) -> Mapping[str, float]:
        """Returns the transitions gathered."""
        return {"memory/size": float(len(self.memory))}

    def eval_mode(self) -> AbstractContextManager[None]:
        """Returns a context in which nothing is stored and nothing learnt."""
        return self._training.off()

    def acting_module(self) -> ActingModule:
        """Returns the greedy policy as a module of its own."""
        named = {name: tensor for name, tensor in self._weights.named.items() if name.startswith("policy.")}
        return ActingModule(named, self._math.greedy)

    # State

    def state_dict(self) -> StateTree:
        """Returns everything but the memory."""
        generators = {"explorer": generator_state(self._generator), "shuffler": generator_state(self._shuffler)}
        return {**self._weights.state_dict(), **generators}

    def load_state_dict(self, state: StateTree) -> None:
        """Brings a freshly built agent of the same definition to a captured state."""
        self._weights.load_state_dict(state)
        load_generator_state(self._generator, state["explorer"])
        load_generator_state(self._shuffler, state["shuffler"])
        self._raw_actions = []

    # Private

    def _tensor(self, array: Array) -> Tensor:
        return torch.from_numpy(array).to(self._device)

    def _raw_of(self, action: Array) -> Array:
        rows = self._policy.from_space(action.reshape(-1, *action.shape[2:]))
        return rows.reshape(*action.shape[:2], *self._policy.raw_shape)

    def _passes(self, batch: Batch, updates: int) -> Iterator[list[Batch]]:
        """Yields the minibatches of each pass: shuffled, of sizes that differ by one at most, together no more than `updates`."""
        size = len(batch.advantage)
        count = -(-size // self._hyper.minibatch_size)
        for done in range(0, min(updates, self._hyper.passes * count), count):
            order = torch.from_numpy(self._shuffler.permutation(size)).to(self._device)
            columns = [column[order].tensor_split(count) for column in batch]
            yield [Batch(*rows) for rows in zip(*columns, strict=True)][: updates - done]

    def _moved_too_far(self, reports: list[Tensor]) -> bool:
        limit = self._hyper.target_kl
        return limit is not None and bool(torch.stack(reports)[:, _KL].mean() > limit)


def build(parameters: PpoParameters, context: AgentContext) -> PpoAgent:
    """Builds the agent; see `PpoAgent`."""
    return PpoAgent(parameters, context)
