"""Hindsight experience replay: relabels transitions with goals that were achieved later.

Source: Andrychowicz et al. 2017, sections 3.3 and 4.5.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from workers.core.types import Array, StateTree
from workers.rl.memory.replay import Replay
from workers.rl.memory.sampling_rules import Places, SamplingRule
from workers.rl.memory.transitions import ReplaySpec, Rows, Sample

Entries = slice | Sequence[int]
"""Indices of entries of an observation vector."""

RewardOf = Callable[[Array, Array], Array | tuple[Array, Array]]
"""Maps achieved goals [M, G] and desired goals [M, G] to rewards [M], or to a pair of rewards [M]
and bool [M], whether the episode terminates there.
"""

_OPEN: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True)
class Goals:
    """The entries of an observation vector that hold goals, and the reward function of goals.

    Raises:
        ValueError: If the ratio is negative.
    """

    achieved: Entries
    """Entries of the goal that the state achieves; G entries."""
    desired: Entries
    """Entries of the goal that the agent should achieve; G entries."""
    compute_reward: RewardOf
    """The environment's reward for the state after a step.

    If it returns rewards only, relabelled transitions keep the stored termination.
    """
    ratio: float = 4.0
    """Virtual goals per real one, at least 0: each transition gets one with probability ratio /
    (ratio + 1).
    """

    def __post_init__(self) -> None:
        if not self.ratio >= 0:
            raise ValueError(
                f"ratio must be at least 0, not {self.ratio}: 4 relabels four transitions of five"
            )


class Hindsight(Replay):
    """A `Replay` that relabels goal-conditioned transitions as they are sampled.

    Observations are float32 vectors; the strategy is `future`.

    A relabelled transition gets as its desired goal the goal achieved in a row drawn uniformly from
    the transition itself and the later stored rows of its episode, which may still be in progress.
    Its reward is computed for that goal. Sequences are not relabelled.

    Args:
        spec: Sizes and fields of the memory.
        rule: Chooses the sampled places; used by this memory only.
        goals: Entries of the goals, and their reward.

    Raises:
        ValueError: If `spec.n_step` is not 1, observations are no float32 vectors, or the entries
            of the goals do not fit them.
    """

    def __init__(self, spec: ReplaySpec, rule: SamplingRule, goals: Goals) -> None:
        _check(spec, goals)
        super().__init__(spec, rule)
        self._goals = goals
        self._share = goals.ratio / (goals.ratio + 1)
        self._ends = np.full((self._steps, self._num_envs), _OPEN)
        self._begins = np.zeros(self._num_envs, np.int64)

    def sample(self, updates: int, batch_size: int) -> Sample:
        """Returns `updates` batches of `batch_size` transitions, some of them relabelled.

        See `Replay.sample`.
        """
        sample = super().sample(updates, batch_size)
        virtual = self.rule.generator.random(sample.places.shape) < self._share
        if virtual.any():
            self._relabel(sample, virtual)
        return sample

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the memory from `state`; see `Replay.load_state_dict`."""
        super().load_state_dict(state)
        self._ends[:] = _OPEN
        self._begins[:] = self.written - self._filled
        if self._filled:
            self._close_episodes(np.arange(self.written - self._filled, self.written))

    def _write_observations(self, begin: int, rows: Rows) -> None:
        super()._write_observations(begin, rows)
        count = len(rows.ended)
        self._ends[begin : begin + count] = _OPEN
        self._close_episodes(self.written + np.arange(count))

    def _close_episodes(self, steps: Places) -> None:
        """Stores the last step of each episode whose successor begins in `steps`, newly written."""
        first, oldest = self._columns["first"], int(steps[-1]) + 1 - self._steps
        begun = first[steps % self._steps]
        for t, slot in zip(*np.nonzero(begun), strict=True):
            step = int(steps[t])
            ended = np.arange(max(int(self._begins[slot]), oldest), step) % self._steps
            self._ends[ended, slot] = step - 1
            self._begins[slot] = step

    def _relabel(self, sample: Sample, is_relabelled: npt.NDArray[np.bool_]) -> None:
        """Relabels in place the transitions of a sample where `is_relabelled` [U, N] is true."""
        achieved, desired = self._goals.achieved, self._goals.desired
        goal = self._flat["next_observation"][
            self._draw_later_places(sample.places[is_relabelled])
        ][:, achieved]
        for observation in (sample.observation, sample.next_observation):
            relabelled = observation[is_relabelled]
            relabelled[:, desired] = goal
            observation[is_relabelled] = relabelled
        result = self._goals.compute_reward(
            sample.next_observation[is_relabelled][:, achieved], goal
        )
        if isinstance(result, tuple):
            result, terminated = result
            sample.discount[is_relabelled] = np.where(terminated, np.float32(0), self._gamma)
        sample.reward[is_relabelled] = result

    def _draw_later_places(self, places: Places) -> Places:
        """Returns places [M], each drawn from one of `places` [M] up to its episode's last row."""
        step = self.written - self._rows_to_newest(places)
        last = np.minimum(self._ends.reshape(-1)[places], self.written - 1)
        ahead = self.rule.generator.integers(last - step + 1)
        later: Places = (places + ahead * self._num_envs) % self.capacity
        return later


def _check(spec: ReplaySpec, goals: Goals) -> None:
    shape, dtype = spec.observation
    if spec.n_step != 1:
        raise ValueError(
            f"hindsight needs n_step 1, not {spec.n_step}: the rewards of further steps were "
            "computed for another goal"
        )
    if len(shape) != 1 or np.dtype(dtype) != np.float32:
        raise ValueError(
            f"hindsight needs observations that are float32 vectors, not {np.dtype(dtype)} "
            f"{list(shape)}: flatten them"
        )
    entries = np.arange(shape[0])
    try:
        achieved, desired = entries[goals.achieved], entries[goals.desired]
    except IndexError as error:
        raise ValueError(
            f"the goals do not lie within observations of {shape[0]} entries: {error}"
        ) from error
    if len(achieved) != len(desired) or not len(achieved):
        raise ValueError(
            "achieved and desired goals must have as many entries, at least 1, not "
            f"{len(achieved)} and {len(desired)}"
        )
