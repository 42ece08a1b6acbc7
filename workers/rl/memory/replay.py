"""Replay memory: the newest transitions of B environments.

They are sampled as single transitions, as n-step transitions, or as sequences.

Rows are stored time-major, [capacity // B, B]: a place is the index t * B + b, and all environments
are written in the same step. A row is one record, so that copying a transition reads contiguous
memory. `sample` returns columns of a copy, which the next call of `sample` overwrites.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from workers.core.row_stream import RowStream
from workers.core.types import Array, StateTree
from workers.rl.memory.largest_reward import LargestReward
from workers.rl.memory.row_copies import RowCopies, check_stored_rows
from workers.rl.memory.sampling_rules import Places, SamplingRule, Weights
from workers.rl.memory.transitions import Field, ReplaySpec, Rows, Sample, SampledSequences


class Replay:
    """Stores the newest transitions and samples them.

    Each row also stores `first`: whether the row does not continue the previous row of its
    environment. n-step sums stop before such a row. Because the flag belongs to the later row, rows
    are not changed after they are written, except that a row may be dropped (`live` is false).

    Args:
        spec: Sizes and fields of the memory.
        rule: Chooses the sampled places; used by this memory only.
    """

    def __init__(self, spec: ReplaySpec, rule: SamplingRule) -> None:
        self.spec = spec
        self.rule = rule
        self._steps, self._num_envs = spec.steps, spec.num_envs
        fields: Mapping[str, Field] = {
            **self._observation_fields(),
            "action": spec.action,
            "reward": ((), np.float32),
            "bootstrap": ((), np.float32),
            "first": ((), np.bool_),
            "live": ((), np.bool_),
        }
        row = np.dtype(
            [(name, dtype, shape) for name, (shape, dtype) in fields.items()], align=True
        )
        self._table = np.zeros((self._steps, self._num_envs), row)
        self._flat = self._table.reshape(-1)
        self._bytes = self._flat.view(np.dtype((np.void, row.itemsize)))
        self._columns: dict[str, Array] = {name: self._table[name] for name in fields}
        self._gamma = np.float32(spec.gamma)
        self._follow = np.arange(min(spec.n_step, self._steps))
        self._discounts = (spec.gamma ** (self._follow + 1.0)).astype(np.float32)
        powers = np.float32(spec.gamma) ** self._follow.astype(np.float32)
        self._powers = np.tril(np.tile(powers, (len(powers), 1)))
        self._fresh = np.ones(self._num_envs, np.bool_)
        self.written = 0
        """Vector steps written so far, overwritten steps included."""
        self._filled = 0
        self._sampled_at = 0
        self.largest_reward = LargestReward(self._columns["reward"])
        self._dead = 0
        self._copied = RowCopies(self._flat.dtype, (0, 0))
        rule.reserve(self.capacity)

    @property
    def capacity(self) -> int:
        """Maximum number of stored transitions."""
        return self._steps * self._num_envs

    def __len__(self) -> int:
        """Returns the number of transitions that can be sampled."""
        return self._filled * self._num_envs - self._dead

    def measure_largest_reward(self) -> float:
        """Returns the largest |reward| written so far; see `LargestReward`."""
        return self.largest_reward.measure(self.written)

    # Writing

    def extend(  # noqa: PLR0913 - one argument per column
        self,
        observation: Array,
        action: Array,
        reward: Array,
        next_observation: Array,
        terminated: Array,
        truncated: Array,
        *,
        active: Array | None = None,
    ) -> None:
        """Stores T >= 1 vector steps; if they exceed the capacity, only the newest are kept.

        Args:
            observation: Observations before the actions, [T, B, ...].
            action: Actions to learn from, [T, B, ...].
            reward: Rewards of the environment, [T, B].
            next_observation: Observations after the actions, [T, B, ...]; at the end of an episode
                the last observation, not the first of the next episode.
            terminated: Whether the episode ended in a terminal state, bool [T, B].
            truncated: Whether the episode was cut off, bool [T, B].
            active: False where a slot waited for the other slots, bool [T, B]; such entries are
                never sampled. `None` if no slot waited.
        """
        ended = terminated | truncated
        if active is not None:
            ended = ended | ~active
        rows = Rows(observation, action, reward, next_observation, terminated, ended, active)
        surplus = len(ended) - self._steps
        if surplus > 0:
            self._fresh, self.written = ended[surplus - 1], self.written + surplus
            rows = rows.part(surplus)
            self._empty()
        begin = self.written % self._steps
        room = self._steps - begin
        if len(rows.ended) <= room:
            self._write(begin, rows)
        else:
            self._write(begin, rows.part(0, room))
            self._write(0, rows.part(room))

    def cut(self, part: slice = slice(None)) -> None:
        """Marks the next rows of the environments `part` as not continuing their newest rows.

        Call it after steps that were not stored, or after an episode was lost.
        """
        self._fresh = self._fresh.copy()
        self._fresh[part] = True

    # Sampling

    def sample(self, updates: int, batch_size: int) -> Sample:
        """Returns `updates` batches of `batch_size` transitions, with replacement.

        A transition sums up n rewards, or k < n where its episode or the stored rows end earlier.
        The target reward + discount * V(next_observation) with discount = gamma^k is correct for
        every k: it is the k-step Bellman equation of the same value. So the newest rows are sampled
        too; leaving them out would only delay learning from them.

        Raises:
            ValueError: If nothing is stored.
        """
        places, weight = self._draw(updates, batch_size)
        if places.shape != self._copied.shape:
            self._copied = RowCopies(self._flat.dtype, places.shape)
        rows = self._copied.fill(self._bytes, places)
        if self.spec.n_step == 1:
            reward, discount, last = rows["reward"], rows["bootstrap"], None
            discount *= self._gamma
        else:
            reward, discount, last = self._returns(places)
        observation, next_observation = self._observations(rows, last)
        return Sample(
            observation, rows["action"], reward, next_observation, discount, weight, places
        )

    def sample_sequences(self, updates: int, batch_size: int, length: int) -> SampledSequences:
        """Returns `updates` batches of `batch_size` sequences of `length` rows.

        First rows are drawn uniformly from those that `length` - 1 rows of the same environment
        follow. Episodes may begin and end within a sequence; `reset` is true where one begins. If
        fewer than `length` rows of an environment are stored, all sequences begin with the oldest
        row and are padded after the newest.

        Raises:
            ValueError: If no sequence can be sampled, or the length is below 1.
        """
        if length < 1:
            raise ValueError(f"a sequence has at least 1 row, not {length}")
        self._check_stored()
        starts = max(1, self._filled - length + 1) * self._num_envs
        drawn = self._draw_starts(starts, (updates, batch_size))
        follow = np.arange(length)
        remaining = self._rows_to_newest(drawn)[..., np.newaxis]
        places = (
            drawn[..., np.newaxis] + np.minimum(follow, remaining - 1) * self._num_envs
        ) % self.capacity
        rows = RowCopies(self._flat.dtype, places.shape).fill(self._bytes, places)
        observation, next_observation = self._observations(rows, None)
        valid = rows["live"] & (follow < remaining)
        discount = rows["bootstrap"] * self._gamma
        return SampledSequences(
            observation,
            rows["action"],
            rows["reward"],
            next_observation,
            discount,
            rows["first"],
            valid,
        )

    def update_errors(self, places: Places, errors: Array) -> None:
        """Passes absolute temporal-difference errors of the last `sample` to the rule.

        Rows that were overwritten or dropped since are skipped.

        Args:
            places: The places that `sample` returned, or some of them.
            errors: One error >= 0 per place.
        """
        places, errors = places.reshape(-1), np.asarray(errors).reshape(-1)
        since = self.written - self._sampled_at
        if since:
            age = (self.written - 1 - places // self._num_envs) % self._steps
            kept = (age >= since) & self._flat["live"][places]
            places, errors = places[kept], errors[kept]
        if len(places):
            self.rule.update_errors(places, errors)

    # State

    def state_dict(self) -> StateTree:
        """Returns the state; the rows are a `RowStream`."""
        return self.lane_state(self.rule, slice(None))

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the memory from `state`.

        Raises:
            ValueError: If `state` is of a memory with other fields, another capacity, another
                number of environments or another rule.
        """
        self._load(state, self.rule, slice(None))

    def lane_state(self, rule: SamplingRule, part: slice) -> StateTree:
        """Returns the state of the environments `part` and of `rule`, as `state_dict` does."""
        rows = RowStream(
            {name: column[:, part] for name, column in self._columns.items()}, self.written
        )
        return {
            "written": self.written,
            "sampled_at": self._sampled_at,
            "steps": self._steps,
            "fresh": self._fresh[part],
            "rule": rule.state_dict(),
            "rows": rows,
        }

    def load_lane(self, state: StateTree, rule: SamplingRule, part: slice) -> None:
        """Restores the environments `part` and `rule` from `state`.

        The states of all environments must have the same number of written rows.

        Raises:
            ValueError: As `load_state_dict` does.
        """
        self._load(state, rule, part)

    # Overridden by memories that store observations in another format

    def _observation_fields(self) -> dict[str, Field]:
        """Returns the fields of a row for `observation` and `next_observation`."""
        return {"observation": self.spec.observation, "next_observation": self.spec.observation}

    def _write_observations(self, begin: int, rows: Rows) -> None:
        """Writes the observations of `rows` from row `begin` on, without wrapping around."""
        span = slice(begin, begin + len(rows.ended))
        self._columns["observation"][span] = rows.observation
        self._columns["next_observation"][span] = rows.next_observation

    def _observations(self, rows: Mapping[str, Array], last: Places | None) -> tuple[Array, Array]:
        """Returns the observations of sampled rows, and the next observations at `last`.

        If `last` is `None`, the next observations are those of the rows themselves.
        """
        successor: Array = (
            rows["next_observation"] if last is None else self._flat["next_observation"][last]
        )
        return rows["observation"], successor

    def _drop(self, step: int) -> None:
        """Excludes row `step` of all environments from sampling until it is written again."""
        live = self._columns["live"][step]
        self._dead += int(np.count_nonzero(live))
        live[:] = False
        self.rule.mark_dropped(np.arange(step * self._num_envs, (step + 1) * self._num_envs))

    # Private

    def _empty(self) -> None:
        """Drops all rows, because every row is about to be overwritten.

        Otherwise the first new row could be compared with a row that does not precede it in time.
        """
        self._columns["live"][:] = False
        self._filled, self._dead = self._steps, self.capacity
        self.rule.mark_dropped(np.arange(self.capacity))

    def _write(self, begin: int, rows: Rows) -> None:
        """Writes `rows` from row `begin` on, without wrapping around."""
        columns, end = self._columns, begin + len(rows.ended)
        span = slice(begin, end)
        if self._dead:
            self._dead -= int(np.count_nonzero(~columns["live"][begin : min(end, self._filled)]))
        columns["action"][span] = rows.action
        columns["reward"][span] = rows.reward
        columns["bootstrap"][span] = ~rows.terminated
        columns["first"][begin] = self._fresh
        if end > begin + 1:
            columns["first"][begin + 1 : end] = rows.ended[:-1]
        columns["live"][span] = True
        self._fresh = rows.ended[-1]
        self._filled = max(self._filled, end)
        self.rule.mark_written(begin * self._num_envs, end * self._num_envs)
        if rows.active is not None:
            self._exclude(begin, ~rows.active)
        self._write_observations(begin, rows)
        self.written += end - begin

    def _exclude(self, begin: int, waiting: Array) -> None:
        """Excludes from sampling the entries where the mask `waiting`, bool [T, B], is true."""
        self._columns["live"][begin : begin + len(waiting)] = ~waiting
        places = np.flatnonzero(waiting) + begin * self._num_envs
        self._dead += len(places)
        if len(places):
            self.rule.mark_dropped(places)

    def _load(self, state: StateTree, rule: SamplingRule, part: slice) -> None:
        filled = min(int(state["written"]), self._steps)
        check_stored_rows(
            state,
            filled,
            self._steps,
            {name: column[:, part] for name, column in self._columns.items()},
        )
        rule.load_state_dict(state["rule"])
        for name, column in self._columns.items():
            column[:filled, part] = state["rows"][name]
        self.written, self._filled, self._sampled_at = (
            int(state["written"]),
            filled,
            int(state["sampled_at"]),
        )
        self._fresh = self._fresh.copy()
        self._fresh[part] = state["fresh"]
        self._dead = int(np.count_nonzero(~self._columns["live"][:filled, part]))

    def _check_stored(self) -> None:
        if not len(self):
            raise ValueError(
                "the memory holds no transition that could be sampled: extend it first"
            )

    def _draw(self, updates: int, batch_size: int) -> tuple[Places, Weights]:
        size = self._filled * self._num_envs
        if size == self._dead:
            self._check_stored()
        self._sampled_at = self.written
        places, weight = self.rule.draw(size, (updates, batch_size))
        if self._dead:
            live = self._flat["live"]
            while count := np.count_nonzero(lost := ~live[places]):
                places[lost] = self.rule.draw(size, (1, int(count)))[0][0]
        return places, weight

    def _draw_starts(self, count: int, shape: tuple[int, ...]) -> Places:
        """Draws places of `shape` uniformly from the live ones of the `count` oldest places."""
        generator = self.rule.generator
        if not self._dead:
            return self._places_by_age(generator.integers(count, size=shape))
        among = self._places_by_age(np.arange(count))
        among = among[self._flat["live"][among]]
        if not len(among):
            raise ValueError(
                "the memory holds no sequence of that length that could be sampled: ask for a "
                "shorter one"
            )
        chosen: Places = among[generator.integers(len(among), size=shape)]
        return chosen

    def _returns(
        self, places: Places
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], Places]:
        """Returns the discounted sums of n-step returns, their discounts and their last places."""
        # Negative indices wrap around to the end of the arrays.
        begin = places - self.capacity
        window = begin[..., np.newaxis] + self._follow * self._num_envs
        stop = self._follow + 1 >= self._rows_to_newest(places)[..., np.newaxis]
        stop[..., :-1] |= self._flat["first"][window[..., 1:]]
        stop[..., -1] = True
        k = stop.argmax(-1)
        last = begin + k * self._num_envs
        reward = np.einsum("...i,...i", self._flat["reward"][window], self._powers[k])
        return reward, self._discounts[k] * self._flat["bootstrap"][last], last

    def _rows_to_newest(self, places: Places) -> Places:
        """Returns the number of rows from each place up to the newest row, both included.

        The rows after the newest are the oldest ones, which do not continue it.
        """
        return (self.written - 1 - places // self._num_envs) % self._steps + 1

    def _places_by_age(self, ages: Places) -> Places:
        """Converts indices in order of age, 0 for the oldest row of environment 0, to places."""
        oldest = self.written % self._steps if self.written > self._steps else 0
        return (ages + oldest * self._num_envs) % self.capacity
