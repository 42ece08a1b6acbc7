"""One replay memory for the agents of a pack, written and sampled for all members at once.

Shapes: n members, of which m are live; B environments per member; U batches of N samples per
member. A member's lane is its B of the n * B columns of the memory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from workers.core.row_stream import RowStream
from workers.core.types import Array, StateTree
from workers.rl.memory.replay import Replay
from workers.rl.memory.sampling_rules import (
    JointUniformSampler,
    Places,
    SamplingRule,
    UniformRule,
    Weights,
    equal_weights,
)
from workers.rl.memory.transitions import ReplaySpec, Sample


def pack_memory(memories: Sequence[Replay]) -> "SharedReplay | SeparateReplays":
    """Returns one memory for a pack, whose `lanes` replace the members' `memories`.

    The memories must be empty.
    """
    return SharedReplay(memories) if type(memories[0]) is Replay else SeparateReplays(memories)


class SharedReplay:
    """Stores the rows of all members in one `Replay`, with one lane of columns per member.

    All members are written at the same row.

    Args:
        memories: One per member; they give the spec and the rules, their rows are not used.
    """

    def __init__(self, memories: Sequence[Replay]) -> None:
        spec, rules = memories[0].spec, [memory.rule for memory in memories]
        self._count = len(memories)
        self._num_envs = spec.num_envs
        self._rule = LaneRules(rules, spec.num_envs)
        self._whole = Replay(_widen_spec(spec, self._count), self._rule)
        self.lanes = [
            Lane(self._whole, rule, index, self._count) for index, rule in enumerate(rules)
        ]
        self._live = list(range(self._count))
        self._drawn: Sequence[Array | None] = [None] * len(Sample._fields)
        """Arrays of the last sample of `_whole`; `_by_member` holds reshaped views of them."""
        self._by_member: list[Array] = [np.empty(0)] * len(Sample._fields)

    def __len__(self) -> int:
        """Returns the number of transitions of each member."""
        return len(self._whole) // self._count

    def keep(self, live: Sequence[int]) -> None:
        """Sets the members that write and sample from now on, by index."""
        for index in set(self._live) - set(live):
            self.lanes[index].leave()
        self._live, self._drawn = list(live), [None] * len(Sample._fields)
        self._rule.keep(live)

    def extend(self, columns: Sequence[Array]) -> None:
        """Stores T vector steps of the m live members, [T, m * B, ...] per column of `Replay`."""
        observation, action, reward, successor, terminated, truncated = map(
            self._all_lanes, columns
        )
        self._whole.extend(observation, action, reward, successor, terminated, truncated)

    def sample(self, updates: int, batch_size: int) -> Sample:
        """Returns `updates` batches for each of the m live members, [U, m, N, ...] per field."""
        members = len(self._live)
        sample: tuple[Array, ...] = self._whole.sample(updates, members * batch_size)
        for index, (array, before) in enumerate(zip(sample, self._drawn, strict=True)):
            # If the memory reused the array, its view is still valid.
            if array is not before:
                self._by_member[index] = array.reshape(
                    updates, members, batch_size, *array.shape[2:]
                )
        self._drawn = sample
        return Sample._make(self._by_member)

    def update_errors(self, places: Places, errors: Array) -> None:
        """Passes the absolute temporal-difference errors of one batch, [m, N], to the rules."""
        self._whole.update_errors(places, errors)

    def _all_lanes(self, column: Array) -> Array:
        """Returns [T, n * B, ...]: a column [T, m * B, ...] with zeros for members that left."""
        if len(self._live) == self._count:
            return column
        steps, rest = len(column), column.shape[2:]
        every = np.zeros((steps, self._count, self._num_envs, *rest), column.dtype)
        every[:, self._live] = column.reshape(steps, len(self._live), self._num_envs, *rest)
        return every.reshape(steps, -1, *rest)


class SeparateReplays:
    """Writes and samples one memory per member, for kinds that cannot share a `Replay`.

    Args:
        memories: One per member, used as they are, such as `FrameReplay`.
    """

    def __init__(self, memories: Sequence[Replay]) -> None:
        self.lanes = self._live = list(memories)

    def __len__(self) -> int:
        """Returns the smallest number of transitions of a live member."""
        return min(map(len, self._live))

    def keep(self, live: Sequence[int]) -> None:
        """Sets the members that write and sample from now on, by index."""
        self._live = [self.lanes[index] for index in live]

    def extend(self, columns: Sequence[Array]) -> None:
        """Stores T vector steps of the m live members, [T, m * B, ...] per column of `Replay`."""
        parts = zip(*(np.split(column, len(self._live), 1) for column in columns), strict=True)
        for memory, (observation, action, reward, successor, terminated, truncated) in zip(
            self._live, parts, strict=True
        ):
            memory.extend(observation, action, reward, successor, terminated, truncated)

    def sample(self, updates: int, batch_size: int) -> Sample:
        """Returns `updates` batches for each of the m live members, [U, m, N, ...] per field."""
        samples = [memory.sample(updates, batch_size) for memory in self._live]
        return Sample._make(np.stack(column, 1) for column in zip(*samples, strict=True))

    def update_errors(self, places: Places, errors: Array) -> None:
        """Passes the absolute temporal-difference errors of one batch, [m, N], to the rules."""
        for memory, own, error in zip(self._live, places, errors, strict=True):
            memory.update_errors(own, error)


class Lane:
    """One member's rows of a shared memory, with the state of a separate memory.

    Args:
        whole: The shared memory.
        rule: The member's sampling rule.
        index: Index of the lane.
        lanes: Number of lanes of the memory, n.
    """

    def __init__(self, whole: Replay, rule: SamplingRule, index: int, lanes: int) -> None:
        self._whole = whole
        self._rule = rule
        self._lanes = lanes
        width = whole.spec.num_envs // lanes
        self._part = slice(index * width, (index + 1) * width)
        self._left: StateTree | None = None
        self._largest_reward = whole.largest_reward.of_environments(self._part)

    @property
    def capacity(self) -> int:
        """Maximum number of stored transitions of this member."""
        return self._whole.capacity // self._lanes

    def __len__(self) -> int:
        """Returns the number of transitions that can be sampled."""
        return len(self._whole) // self._lanes

    def measure_largest_reward(self) -> float:
        """Returns the member's largest |reward| written so far; see `LargestReward`."""
        return self._largest_reward.measure(self._whole.written)

    def leave(self) -> None:
        """Copies the member's present state, before the shared memory overwrites its rows."""
        state = self.state_dict()
        rows = RowStream(
            {name: column.copy() for name, column in state["rows"].items()}, state["rows"].end
        )
        self._left = {**state, "fresh": state["fresh"].copy(), "rows": rows}

    def cut(self) -> None:
        """Marks the member's next rows as not continuing its newest rows."""
        self._whole.cut(self._part)

    def state_dict(self) -> StateTree:
        """Returns the state, in the format of a separate `Replay` of this member."""
        return self._left or self._whole.lane_state(self._rule, self._part)

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the member's rows from `state`, and the number of rows written to the memory.

        Raises:
            ValueError: If the memory already holds rows of other members and another number of
                rows was written to it; and as `Replay.load_state_dict` does.
        """
        if len(self._whole) and self._whole.written != int(state["written"]):
            raise ValueError(
                f"{state['written']} rows were written to the stored memory, {self._whole.written} "
                "to others of the pack"
            )
        self._whole.load_lane(state, self._rule, self._part)


class LaneRules(SamplingRule):
    """The sampling rule of a shared memory, which applies the rule of each lane to its places.

    Args:
        rules: One per lane.
        num_envs: Environments per lane, B.
    """

    def __init__(self, rules: Sequence[SamplingRule], num_envs: int) -> None:
        super().__init__(rules[0].generator)
        self._rules = list(rules)
        self._num_envs = num_envs
        self._are_uniform = all(type(rule) is UniformRule for rule in rules)
        self.keep(range(len(rules)))

    def keep(self, live: Sequence[int]) -> None:
        """Sets the lanes that are sampled and written from now on, by index."""
        self._live = list(live)
        self._begins = np.array(self._live)[:, np.newaxis] * self._num_envs
        self._together = JointUniformSampler([self._rules[lane].generator for lane in live])

    def draw(self, size: int, shape: tuple[int, int]) -> tuple[Places, Weights]:
        """Returns places and weights [U, m * N], drawn by each member's own rule."""
        each, within = (shape[0], shape[1] // len(self._live)), size // len(self._rules)
        if self._are_uniform:
            own, weights = self._together.draw(within, each), equal_weights(shape)
        else:
            drawn = [self._rules[lane].draw(within, each) for lane in self._live]
            own = np.stack([places for places, _ in drawn], 1)
            weights = np.stack([weight for _, weight in drawn], 1).reshape(shape)
        between = (len(self._rules) - 1) * self._num_envs
        places = own + own // self._num_envs * between + self._begins
        return places.reshape(shape), weights

    def mark_written(self, begin: int, end: int) -> None:
        """Notifies the rule of each live lane that the places [begin, end) hold new rows."""
        if not self._are_uniform:
            for lane in self._live:
                self._rules[lane].mark_written(begin // len(self._rules), end // len(self._rules))

    def mark_dropped(self, places: Places) -> None:
        """Notifies the rule of each live lane of its dropped places."""
        for lane, own, _ in self._split_by_lane(places):
            self._rules[lane].mark_dropped(own)

    def update_errors(self, places: Places, errors: Array) -> None:
        """Passes the errors to the rules of the live lanes; `places` and `errors` are [N]."""
        if not self._are_uniform:
            for lane, own, which in self._split_by_lane(places):
                self._rules[lane].update_errors(own, errors[which])

    def state_dict(self) -> StateTree:
        """Returns an empty state: each lane saves its own rule."""
        return {}

    def load_state_dict(self, state: StateTree) -> None:
        """Does nothing: each lane restores its own rule."""

    def _split_by_lane(self, places: Places) -> Iterator[tuple[int, Places, npt.NDArray[np.bool_]]]:
        """Yields each live lane with its places and a mask, bool [N], of these among `places` [N].

        The places are numbered within the lane, as its rule expects them.
        """
        row, column = np.divmod(places, len(self._rules) * self._num_envs)
        lanes, index = np.divmod(column, self._num_envs)
        for lane in self._live:
            which = lanes == lane
            if which.any():
                yield lane, (row * self._num_envs + index)[which], which


def _widen_spec(spec: ReplaySpec, count: int) -> ReplaySpec:
    return replace(
        spec, capacity=spec.steps * spec.num_envs * count, num_envs=spec.num_envs * count
    )
