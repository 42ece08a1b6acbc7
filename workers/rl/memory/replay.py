"""Replay memory: the newest transitions of B environments.

They are sampled singly by a rule, as n-step transitions, or as sequences.

Rows lie time-major, [capacity // B, B]: a place is the number t * B + b, and all environments go on
together. One row is one record, so that drawing a transition touches one stretch of memory; what
`sample` returns are columns of a copy, which the next one overwrites.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from workers.core.row_stream import RowStream
from workers.core.types import Array, StateTree
from workers.rl.memory.row_copies import RowCopies, check_stored_rows
from workers.rl.memory.sampling_rules import Places, Rule, Weights
from workers.rl.memory.transitions import Field, ReplaySpec, Rows, Sample, SampledSequences


class Replay:
    """Keeps the newest transitions and samples them.

    Beside what it is given, a row holds `first`, which says that the row does not continue the one
    before it: where it is set, n-step sums and sequences know that an episode ended. So nothing
    that was written is changed afterwards, but that a row may be dropped.

    Args:
        spec: What it keeps.
        rule: How places are chosen; the memory's own.
    """

    def __init__(self, spec: ReplaySpec, rule: Rule) -> None:
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
        """Vector steps ever written."""
        self._filled = 0
        self._sampled_at = 0
        self._dead = 0
        self._copied = RowCopies(self._flat.dtype, (0, 0))
        rule.reserve(self.capacity)

    @property
    def capacity(self) -> int:
        """Most transitions kept."""
        return self._steps * self._num_envs

    def __len__(self) -> int:
        """Returns the number of transitions that can be sampled."""
        return self._filled * self._num_envs - self._dead

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
        """Copies T >= 1 vector steps, each argument [T, B, ...]; of more than fit, the last ones.

        Args:
            observation: What was acted on.
            action: What was done, as it is to be learnt from.
            reward: As the environment gave it.
            next_observation: The true successor, also where the episode ended.
            terminated: bool: the episode ended in a terminal state.
            truncated: bool: the episode was cut.
            active: bool: false where a slot waited, so that its entries mean nothing and are never
                sampled; `None` where none did.
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
        """Marks the next rows of some environments as not continuing their newest ones.

        That is so after steps that were not stored, or a lost episode.
        """
        self._fresh = self._fresh.copy()
        self._fresh[part] = True

    # Sampling

    def sample(self, updates: int, batch_size: int) -> Sample:
        """Returns `updates` batches of `batch_size` transitions, with replacement.

        A transition sums up n rewards, but fewer where its episode ended before, and where the
        memory ends: the newest rows are sampled too. The target reward + discount *
        V(next_observation) with discount = gamma^k is a right one for every k: it is the k-step
        Bellman equation of the same value, and k only decides how much of it is a bootstrap. So a
        transition of k < n rows is not an approximation, and leaving out the newest rows would
        delay what they teach for nothing.

        Raises:
            ValueError: If nothing is stored.
        """
        places, weight = self._draw(updates, batch_size)
        if places.shape != self._copied.shape:
            self._copied = RowCopies(self._flat.dtype, places.shape)
        rows = self._copied.filled(self._bytes, places)
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
        """Samples `updates` batches of `batch_size` sequences of `length` rows.

        Every place where a sequence can begin is equally likely.

        It can begin where so many rows follow in the same environment; episodes may begin and end
        within it, and `reset` says where. If less is stored, all begin with the oldest row, and
        what lies behind the newest is padding.

        Raises:
            ValueError: If nothing that long is stored, or the length is below 1.
        """
        if length < 1:
            raise ValueError(f"a sequence has at least 1 row, not {length}")
        self._check_stored()
        starts = max(1, self._filled - length + 1) * self._num_envs
        drawn = self._starts(starts, (updates, batch_size))
        follow = np.arange(length)
        left = self._left(drawn)[..., np.newaxis]
        places = (
            drawn[..., np.newaxis] + np.minimum(follow, left - 1) * self._num_envs
        ) % self.capacity
        rows = RowCopies(self._flat.dtype, places.shape).filled(self._bytes, places)
        observation, next_observation = self._observations(rows, None)
        valid = rows["live"] & (follow < left)
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

    def feedback(self, places: Places, errors: Array) -> None:
        """Hands the absolute temporal-difference errors of the last `sample` to the rule.

        Args:
            places: As `sample` returned them, or some of them.
            errors: As many, none negative. Those of rows that were overwritten since are left out.
        """
        places, errors = places.reshape(-1), np.asarray(errors).reshape(-1)
        since = self.written - self._sampled_at
        if since:
            age = (self.written - 1 - places // self._num_envs) % self._steps
            kept = (age >= since) & self._flat["live"][places]
            places, errors = places[kept], errors[kept]
        if len(places):
            self.rule.feedback(places, errors)

    # State

    def state_dict(self) -> StateTree:
        """Returns what is small, and the rows as a stream."""
        return self.lane_state(self.rule, slice(None))

    def load_state_dict(self, state: StateTree) -> None:
        """Brings the memory to a captured state.

        Raises:
            ValueError: If it is of a memory with other fields, another capacity, another number of
                environments or another rule.
        """
        self._load(state, self.rule, slice(None))

    def lane_state(self, rule: Rule, part: slice) -> StateTree:
        """Returns the state of some environments and of a rule, as a memory of their own would."""
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

    def load_lane(self, state: StateTree, rule: Rule, part: slice) -> None:
        """Brings some of the environments, and that rule, to a captured state.

        All are to be brought to the same row.

        Raises:
            ValueError: As `load_state_dict` does.
        """
        self._load(state, rule, part)

    # For memories that keep observations in another way

    def _observation_fields(self) -> dict[str, Field]:
        """Returns what a row holds for its two observations."""
        return {"observation": self.spec.observation, "next_observation": self.spec.observation}

    def _write_observations(self, begin: int, rows: Rows) -> None:
        """Writes the observations of rows, the first of which goes to row `begin`.

        They do not wrap.
        """
        span = slice(begin, begin + len(rows.ended))
        self._columns["observation"][span] = rows.observation
        self._columns["next_observation"][span] = rows.next_observation

    def _observations(self, rows: Mapping[str, Array], last: Places | None) -> tuple[Array, Array]:
        """Returns the observations of drawn rows and the successors at the places `last`.

        Without `last` the successors are those of the rows themselves.
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
        self.rule.dropped(np.arange(step * self._num_envs, (step + 1) * self._num_envs))

    # Private

    def _empty(self) -> None:
        """Drops all rows, because every one is about to be written.

        The row before the first of them is not its predecessor in time.
        """
        self._columns["live"][:] = False
        self._filled, self._dead = self._steps, self.capacity
        self.rule.dropped(np.arange(self.capacity))

    def _write(self, begin: int, rows: Rows) -> None:
        """Writes rows that do not wrap."""
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
        self.rule.written(begin * self._num_envs, end * self._num_envs)
        if rows.active is not None:
            self._set_apart(begin, ~rows.active)
        self._write_observations(begin, rows)
        self.written += end - begin

    def _set_apart(self, begin: int, waiting: Array) -> None:
        """Marks the entries of slots that waited, bool [T, B]."""
        self._columns["live"][begin : begin + len(waiting)] = ~waiting
        places = np.flatnonzero(waiting) + begin * self._num_envs
        self._dead += len(places)
        if len(places):
            self.rule.dropped(places)

    def _load(self, state: StateTree, rule: Rule, part: slice) -> None:
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

    def _starts(self, count: int, shape: tuple[int, ...]) -> Places:
        """Draws places of `shape` uniformly from the `count` oldest that can be sampled."""
        generator = self.rule.generator
        if not self._dead:
            return self._aged(generator.integers(count, size=shape))
        among = self._aged(np.arange(count))
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
        begin = places - self.capacity  # negative places count from the end: the ring closes
        window = begin[..., np.newaxis] + self._follow * self._num_envs
        stop = self._follow + 1 >= self._left(places)[..., np.newaxis]
        stop[..., :-1] |= self._flat["first"][window[..., 1:]]
        stop[..., -1] = True
        k = stop.argmax(-1)
        last = begin + k * self._num_envs
        reward = np.einsum("...i,...i", self._flat["reward"][window], self._powers[k])
        return reward, self._discounts[k] * self._flat["bootstrap"][last], last

    def _left(self, places: Places) -> Places:
        """Returns the number of rows from each place up to the newest, both included.

        Behind the newest row lie the oldest ones, which follow nothing.
        """
        return (self.written - 1 - places // self._num_envs) % self._steps + 1

    def _aged(self, ages: Places) -> Places:
        """Returns places by age, the oldest row of the first environment being 0."""
        oldest = self.written % self._steps if self.written > self._steps else 0
        return (ages + oldest * self._num_envs) % self.capacity
