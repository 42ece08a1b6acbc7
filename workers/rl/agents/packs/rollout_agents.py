"""Exploring, storing and sampling for all rollout agents of a pack.

m live agents (that have not left), B environments of each, T vector steps, N samples of a batch.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from workers.core.types import Array, Experience, LearnReport
from workers.rl.agents.common.on_policy import RolloutBatch
from workers.rl.agents.packs.packed_agents import PackedAgents
from workers.rl.agents.shells.learning import report_of, reports_of
from workers.rl.agents.shells.rollout_agent import RolloutAgent
from workers.rl.exploration.random_blocks import JoinedRandomBlocks


class PackedRolloutAgents(PackedAgents[RolloutAgent]):
    """Explores, stores and samples for all rollout agents of a pack.

    Each agent keeps its own rollout, and shuffles it with its own generator.

    Args:
        agents: Agents of one definition.
    """

    def __init__(self, agents: Sequence[RolloutAgent]) -> None:
        super().__init__(agents)
        self.may_agents_wait = agents[0].parts.target_kl is not None
        self._draws: JoinedRandomBlocks | None = None
        self._raw: list[Array] = []
        self._go_on = np.ones(len(agents), np.bool_)
        """bool [m]: agents that learn in the current pass; false after `target_kl` was exceeded."""
        self._reports: list[tuple[Tensor, npt.NDArray[np.bool_]]] = []
        """Reports [m, R] of each update, and the mask bool [m] of agents that it is valid for."""

    def write_back(self) -> None:
        """Writes the positions in the blocks of random numbers back to the agents."""
        if self._draws is not None:
            self._draws.write_back()

    def discard_joined(self) -> None:
        """Discards the joined random numbers, after an agent was restored or some have left."""
        self._draws = None

    # Acting

    def normalise_step(self, observation: Array) -> Array:
        """Returns observations [m, B, ...] of a training step, normalised if the agents do so."""
        if not self._agents[0].normalisers.normalises_observations:
            return observation
        return np.stack(
            [
                agent.normalise_step(own)
                for agent, own in zip(self._agents, observation, strict=True)
            ]
        )

    def acting_noise(self, count: int) -> tuple[Array, ...]:
        """Returns the random numbers of `count` exploring actions of each, [m, count, ...]."""
        if self._draws is None:
            self._draws = JoinedRandomBlocks([agent.draws for agent in self._agents])
        draws = self._draws
        draws.advance((len(self._agents) * count,))
        return tuple(
            block[draws.step].reshape(len(self._agents), count, *block.shape[2:])
            for block in draws.block
        )

    def explore_actions(self, raw: Array) -> Array:
        """Returns actions [m * B, ...] for raw ones [m, B, ...]; keeps these for `observe`."""
        self._raw.append(raw)
        return self._agents[0].policy.to_space(raw.reshape(-1, *raw.shape[2:]))

    # Learning

    def observe(self, experience: Experience) -> None:
        """Stores experience [T, m * B, ...]."""
        raw, self._raw = np.stack(self._raw, 1), []
        width = raw.shape[2]
        for index, (agent, own) in enumerate(zip(self._agents, raw, strict=True)):
            agent.store_raw_actions(list(own))
            agent.observe(experience.columns(slice(index * width, (index + 1) * width)))

    def batches(
        self, updates: int, state: Callable[[], object]
    ) -> Iterator[tuple[RolloutBatch, Array | None]]:
        """Yields batches of tensors [m, N, ...] and the mask bool [m] of agents that have a batch.

        The mask is `None` if all agents have one. The caller passes each batch to `note` before it
        requests the next one.
        """
        first, device = self._agents[0], self._agents[0].device
        if updates < 1 or not len(first.memory):
            return
        rollouts = [agent.take_rollout() for agent in self._agents]
        joined = {
            name: np.concatenate([each[name] for each in rollouts], 1) for name in rollouts[0]
        }
        whole = first.algorithm.prepare(state(), joined, len(rollouts))
        for agent, advantage, target in zip(
            self._agents, whole.advantage, whole.value_target, strict=True
        ):
            agent.note_values(advantage, target)
        size = whole.advantage.shape[1]
        count, limit = first.minibatches(size), first.parts.passes
        self._go_on = np.ones(len(self._agents), np.bool_)
        for done in range(0, min(updates, limit * count), count):
            begin = len(self._reports)
            for places, noise in self._pass(size, count)[: updates - done]:
                batch = whole if places is None else whole.rows(torch.from_numpy(places).to(device))
                batch = batch._replace(
                    noise=tuple(torch.from_numpy(part).to(device) for part in noise)
                )
                yield batch, None if self._go_on.all() else self._go_on
            self._go_on = self._go_on & ~self._has_moved_too_far(begin)
            if not self._go_on.any():
                return

    def note(self, report: Tensor, error: Tensor) -> None:
        """Stores the reports [m, R] of the update with the last batch."""
        del error
        self._reports.append((report, self._go_on))

    def take_report(self) -> list[LearnReport]:
        """Returns for each agent its updates since the last call and the mean of their reports."""
        reports, self._reports = self._reports, []
        if not reports:
            return [LearnReport(0)] * len(self._agents)
        values, noted = [report for report, _ in reports], np.stack([on for _, on in reports])
        if noted.all():
            return reports_of(values)
        # An agent that stopped never resumes, so its updates are the first ones.
        return [
            report_of([report[index] for report in values[:count]])
            for index, count in enumerate(noted.sum(0).tolist())
        ]

    # Private

    def _pass(self, size: int, count: int) -> list[tuple[Array | None, tuple[Array, ...]]]:
        """Returns for each batch of a pass the indices of its samples [m, N], and its noise.

        The indices are `None` if the batch holds all samples. Each agent that learns in this pass
        draws its own; the rows of the other agents are copies that are not learnt from.
        """
        draws = [
            agent.shuffle(size, count) if on else None
            for agent, on in zip(self._agents, self._go_on, strict=True)
        ]
        spare = next(one for one in draws if one is not None)
        orders, noise = zip(*(one or spare for one in draws), strict=True)
        stacked_noise = [
            tuple(np.stack(parts) for parts in zip(*one, strict=True))
            for one in zip(*noise, strict=True)
        ]
        places = [None] if orders[0] is None else np.array_split(np.stack(orders), count, 1)
        return list(zip(places, stacked_noise, strict=True))

    def _has_moved_too_far(self, begin: int) -> npt.NDArray[np.bool_]:
        """Returns bool [m]: whether the mean KL divergence of the pass exceeds `target_kl`.

        The reports of the pass are those from index `begin` on.
        """
        first = self._agents[0]
        if first.parts.target_kl is None:
            return np.zeros(len(self._agents), np.bool_)
        kl = torch.stack([report for report, _ in self._reports[begin:]])[
            :, :, first.report_names.index("policy/kl")
        ]
        moved: npt.NDArray[np.bool_] = (kl.mean(0) > first.parts.target_kl).cpu().numpy()
        return moved
