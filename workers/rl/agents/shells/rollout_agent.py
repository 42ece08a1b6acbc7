"""The shell of on-policy agents: acting, rollout, passes and state.

Advantages, losses and updates are those of an `OnPolicyMath`.

T vector steps of a rollout, B environments, N samples of a batch, R values of a report.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from workers.acceleration.update_runner import make_sized_runner
from workers.core.rng import derive_generator, generator_state, load_generator_state
from workers.core.types import (
    AgentContext,
    Array,
    CollectPlan,
    Experience,
    LearnReport,
    LearnSchedule,
    StateTree,
)
from workers.rl.agents.common.actor_critic import ActorCritic
from workers.rl.agents.common.normalisers import Normalisers
from workers.rl.agents.common.on_policy import OnPolicyMath, RolloutBatch
from workers.rl.agents.shells.learning import LearningAgent
from workers.rl.agents.shells.rollout_statistics import RolloutStatistics
from workers.rl.exploration.random_blocks import RandomBlocks
from workers.rl.memory.ring import Fields
from workers.rl.memory.rollout import Rollout
from workers.rl.networks.acting_module import ActingModule
from workers.rl.networks.parameter_layout import Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutParts:
    """Algorithm and settings of a `RolloutAgent`."""

    algorithm: OnPolicyMath[Any]
    learning_rate: float
    vector_steps: int = 0
    """T; 0 if a rollout is made of whole episodes (`episodes`)."""
    episodes: int = 0
    """Number of episodes in a rollout; 0 if its length is `vector_steps`."""
    passes: int = 1
    minibatch_size: int | None = None
    """Transitions per update; `None` learns from the whole rollout at once."""
    has_whole_envs: bool = False
    """Whether a minibatch holds all steps of some environments; `minibatch_size` then counts
    environments.
    """
    is_compiled: bool = True
    """Whether the update is compiled if the context requests it; false where that is slower."""
    target_kl: float | None = None
    """Learning stops after a pass whose mean of `policy/kl` is above this; `None` for no limit."""
    normalisers: Normalisers


class RolloutAgent(LearningAgent[OnPolicyMath[Any]]):
    """Acts by sampling its policy, and learns from rollouts in passes over shuffled minibatches.

    The steps of `learn` and `act` are public methods, so that a pack can make the same steps for
    several agents at once (`workers.rl.agents.packs`).

    Args:
        parts: Algorithm and settings.
        context: Seed, device and number of environments.
    """

    has_stochastic_policy = True

    def __init__(self, parts: RolloutParts, context: AgentContext) -> None:
        algorithm = parts.algorithm
        super().__init__(algorithm, algorithm.model.policy, parts.learning_rate, context)
        self.parts = parts
        self.policy = algorithm.model.policy
        self.num_envs = context.num_envs
        size = parts.vector_steps * context.num_envs if parts.is_compiled else 0
        self._update = make_sized_runner(
            algorithm.update, mode=context.compile, sizes=self._batch_sizes(size)
        )
        self.draws = RandomBlocks(
            derive_generator(context.seed, "agent/explore"), algorithm.acting_noise
        )
        self._shuffler = derive_generator(context.seed, "agent/shuffle")
        self.normalisers = parts.normalisers
        self.statistics = RolloutStatistics()
        self.memory = Rollout(
            max(1, parts.vector_steps), context.num_envs, rollout_fields(algorithm.model)
        )
        self._raw_actions: list[Array] = []
        self._met: list[Array] = []
        """Normalised observations that were acted on since the last `observe`, [B, ...] each; empty
        if observations are not normalised.
        """
        self._active: Array | None = None

    # Actor

    def act(self, observation: Array, *, explore: bool) -> Array:
        """Returns sampled or, without drawing random numbers, most probable actions [B, ...]."""
        if not explore:
            return self.policy.to_space(
                self._raw(observation, self.evaluation_noise(len(observation)))
            )
        return self.explore_actions(
            super()._raw(self.normalise_step(observation), self.acting_noise(len(observation)))
        )

    def set_active_slots(self, active: npt.NDArray[np.bool_]) -> None:
        """Sets the mask bool [B] of slots that will execute the next exploring actions."""
        self._active = active.copy()

    def normalise_step(self, observation: Array) -> Array:
        """Returns the normalised observations [B, ...] of a training step.

        Updates the statistics and keeps the result for `observe`.
        """
        active, self._active = self._active, None
        if not self.normalisers.normalises_observations:
            return observation
        if not self._training.is_on:
            return self.normalisers.normalise(observation)
        self._met.append(self.normalisers.normalise_step(observation, active))
        return self._met[-1]

    def acting_noise(self, count: int) -> tuple[Array, ...]:
        """Returns the random numbers of `count` exploring actions."""
        draws = self.draws
        draws.advance((count,))
        return tuple(block[draws.step] for block in draws.block)

    def evaluation_noise(self, count: int) -> tuple[Array, ...]:
        """Returns the random numbers of `count` actions of an evaluation; none for greedy ones."""
        return self._sampler.draw(count, lambda row: self.algorithm.acting_noise(row, (1,)))

    def explore_actions(self, raw: Array) -> Array:
        """Returns the actions of the space for raw ones [B, ...] and keeps these for `observe`."""
        self._raw_actions.append(raw)
        return self.policy.to_space(raw)

    # Learner

    @property
    def collect_plan(self) -> CollectPlan:
        """One rollout: `vector_steps`, or else `episodes`."""
        parts = self.parts
        return (
            CollectPlan(vector_steps=parts.vector_steps)
            if parts.vector_steps
            else CollectPlan(episodes=parts.episodes)
        )

    @property
    def learn_schedule(self) -> LearnSchedule:
        """All minibatches of all passes after each rollout."""
        parts, size = self.parts, self.parts.vector_steps * self.num_envs
        if not size:
            return LearnSchedule(2**62, parts.passes, learns_at_episode_end=True)
        return LearnSchedule(
            size, parts.passes * self.minibatches(self.num_envs if parts.has_whole_envs else size)
        )

    def store_raw_actions(self, raw: Sequence[Array]) -> None:
        """Stores raw actions [B, ...] of vector steps that a pack has sampled for this agent."""
        self._raw_actions += raw

    def observe(self, experience: Experience) -> None:
        """Copies the transitions into the rollout.

        Raw actions and normalised observations are those that `act` kept since the last call. For
        experience that was not collected with `act`, both are computed from the experience.
        """
        drawn, self._raw_actions = self._raw_actions, []
        met, self._met = self._met, []
        if not self._training.is_on:
            return
        shape = experience.terminated.shape
        raw = np.stack(drawn) if len(drawn) == shape[0] else self._raw_of(experience.action)
        active = np.ones(shape, np.bool_) if experience.active is None else experience.active
        flags = (experience.terminated, experience.truncated, experience.next_observation, active)
        observation = experience.observation
        if self.normalisers.normalises_observations:
            observation = np.stack(
                met
                if len(met) == shape[0]
                else list(map(self.normalisers.normalise_step, observation, active))
            )
        self.memory.extend(
            (observation, raw, experience.reward, *flags, *self._extra_columns(experience))
        )

    def mark_lost_episodes(self, lost: npt.NDArray[np.bool_]) -> None:
        """Marks the environments, bool [B], whose next transition does not continue the last.

        Their episodes are stored as truncated at the last step.
        """
        if len(self.memory):
            rows = self.memory.contents()
            rows["truncated"][-1] |= lost & ~rows["terminated"][-1]

    def learn(self, updates: int) -> LearnReport:
        """Learns from the whole rollout and empties it.

        Makes fewer than `updates` updates if the KL divergence exceeds `target_kl`.
        """
        for batch in self.batches(updates):
            self.learning_state, report, error = self._update(self._state, batch)
            self.note(batch, report, error)
        return self.take_report()

    def batches(self, updates: int) -> Iterator[RolloutBatch]:
        """Yields at most `updates` shuffled minibatches, pass after pass.

        Sizes differ by at most one. The caller passes each minibatch to `note` before it requests
        the next one.
        """
        if not self._training.is_on or updates < 1 or not len(self.memory):
            return
        whole = self.algorithm.prepare(self._state, self.take_rollout())
        size = len(whole.advantage)
        if not size:
            return
        self.note_values(whole.advantage, whole.value_target)
        count = self.minibatches(size)
        for done in range(0, min(updates, self.parts.passes * count), count):
            begin = len(self._reports)
            yield from self._pass(whole, size, count)[: updates - done]
            if self._has_moved_too_far(begin):
                return

    def take_rollout(self) -> Mapping[str, Array]:
        """Empties the rollout and returns its contents with rewards and successors normalised.

        The arrays [T, B, ...] are valid until the next `observe`.
        """
        rollout = self.normalisers.normalise_rollout(self.memory.contents())
        self.memory.clear()
        self.statistics.note_rewards(rollout["reward"])
        return rollout

    def note_values(self, advantage: Tensor, value_target: Tensor) -> None:
        """Takes advantages and value targets [N] of a rollout for the agent's metrics."""
        if self.algorithm.estimates_values:
            self.statistics.note_values(advantage, value_target)

    def shuffle(self, size: int, count: int) -> tuple[Array | None, list[tuple[Array, ...]]]:
        """Returns the random numbers of a pass over `size` samples in `count` batches.

        Returns:
            The order of the samples int64 [size], or `None` if one batch holds all samples; and the
                noise of each batch.
        """
        if self.parts.minibatch_size is None:
            return None, [self.algorithm.noise(self._shuffler, size)]
        order = self._shuffler.permutation(size)
        return order, [
            self.algorithm.noise(self._shuffler, size // count + (index < size % count))
            for index in range(count)
        ]

    def minibatches(self, size: int) -> int:
        """Returns the number of batches in a pass over `size` samples."""
        return 1 if self.parts.minibatch_size is None else -(-size // self.parts.minibatch_size)

    def note(self, batch: RolloutBatch, report: Tensor, error: Tensor) -> None:
        """Stores the report [R] of an update with a batch."""
        del batch, error
        self._reports.append(report)

    def metrics(self) -> Mapping[str, float]:
        """Returns the number of transitions in the rollout, and the statistics of the last one."""
        return {"memory/size": float(len(self.memory)), **self.statistics.metrics()}

    def acting_module(self) -> ActingModule:
        """Returns the greedy policy, normaliser included, as an exportable module."""
        algorithm, policy, normalise = (
            self.algorithm,
            self.policy,
            self.normalisers.normalise_tensors,
        )
        parameters = {
            name: tensor
            for name, tensor in self.named_parameters().items()
            if not name.startswith("value.")
        }

        def greedy(parameters: Parameters, observation: Tensor) -> Tensor:
            return policy.tensor_to_space(
                algorithm.act(parameters, normalise(parameters, observation), ())
            )

        return ActingModule({**parameters, **self.normalisers.tensors()}, greedy)

    # State

    def state_dict(self) -> StateTree:
        """Returns learning state, random numbers, shuffler, normalisers and statistics.

        The rollout is saved separately.
        """
        return {
            **super().state_dict(),
            "explorer": self.draws.state_dict(),
            "shuffler": generator_state(self._shuffler),
            "normalisers": self.normalisers.state_dict(),
            "statistics": self.statistics.state_dict(),
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Restores `state` in a new agent of the same definition."""
        super().load_state_dict(state)
        self.draws.load_state_dict(state["explorer"])
        load_generator_state(self._shuffler, state["shuffler"])
        self.normalisers.load_state_dict(state["normalisers"])
        self.statistics.load_state_dict(state["statistics"])
        self._raw_actions, self._met = [], []

    # Private

    def _raw(self, observation: Array, noise: tuple[Array, ...]) -> Array:
        return super()._raw(self.normalisers.normalise(observation), noise)

    def _pass(self, whole: RolloutBatch, size: int, count: int) -> list[RolloutBatch]:
        """Returns the minibatches of one pass."""
        order, noise = self.shuffle(size, count)
        batches = (
            [whole]
            if order is None
            else [whole.rows(places) for places in self._tensor(order).tensor_split(count)]
        )
        return [
            batch._replace(noise=tuple(map(self._tensor, own)))
            for batch, own in zip(batches, noise, strict=True)
        ]

    def _extra_columns(self, experience: Experience) -> tuple[Array, ...]:
        """Returns further fields of the rollout that a subclass stores, [T, B, ...] each."""
        del experience
        return ()

    def _batch_sizes(self, size: int) -> set[int]:
        """Returns the sizes of the minibatches of a rollout of `size` samples."""
        if not size:
            return set()
        count = self.minibatches(size)
        return {size // count, -(-size // count)}

    def _has_moved_too_far(self, begin: int) -> bool:
        limit = self.parts.target_kl
        if limit is None:
            return False
        place = self.report_names.index("policy/kl")
        return bool(torch.stack(self._reports[begin:])[:, place].mean() > limit)

    def _raw_of(self, action: Array) -> Array:
        rows = self.policy.from_space(action.reshape(-1, *action.shape[2:]))
        return rows.reshape(*action.shape[:2], *self.policy.raw_shape)


def rollout_fields(model: ActorCritic) -> Fields:
    """Returns shape and dtype of each field that a rollout stores per step."""
    row, flag = (model.encoding.shape, model.encoding.dtype), ((), np.bool_)
    fields: Fields = {
        "observation": row,
        "action": (model.policy.raw_shape, model.policy.raw_dtype),
        "reward": ((), np.float32),
    }
    return {
        **fields,
        "terminated": flag,
        "truncated": flag,
        "next_observation": row,
        "active": flag,
    }
