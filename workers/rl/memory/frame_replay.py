"""Replay memory of stacked frames that stores each frame once.

An observation of k frames is stored as the numbers of its k frames.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from workers.core.row_stream import RowStream
from workers.core.types import Array, StateTree
from workers.rl.memory.replay import Replay
from workers.rl.memory.sampling_rules import Places, SamplingRule
from workers.rl.memory.transitions import Field, ReplaySpec, Rows

_SPARE: Final = 1 / 16
"""Frames reserved at first beyond one per transition, as a share of the capacity."""
_PIECE: Final = 4_096
"""Frames that are copied at once when the frame buffer grows."""


class FrameReplay(Replay):
    """A `Replay` of observations [k, ...] that are stacks of the newest k frames, the newest last.

    Frames are shared by comparison, without assumptions about the environment. An observation that
    equals the successor in the previous row shares all its frames. A successor whose first k - 1
    frames are the last k - 1 of its observation adds one frame. Any other stack, such as the first
    of an episode, adds all its frames, except that consecutive equal frames are stored once.
    Sampled stacks therefore equal the stored ones exactly, and each row has its true successor,
    also at the end of an episode.

    An episode of L steps needs L + 1 frames, or L + 2 if black frames pad its first stack. The
    initial frame buffer holds a sixteenth more frames than transitions, which suffices while
    episodes last 32 steps on average. Shorter episodes, and observations that are not stacks of
    successive frames, such as the channels of a colour image, need more: the buffer grows, at most
    to the size of unshared observations, so that the memory holds `capacity` transitions. If it
    cannot grow, the oldest transitions, whose frames were overwritten, are no longer sampled.

    Args:
        spec: Sizes and fields of the memory; observations have the shape [k, ...].
        rule: Chooses the sampled places; used by this memory only.
        spare: Frames reserved at first beyond one per transition, as a share of the capacity.
        may_grow: Whether the frame buffer may grow.

    Raises:
        ValueError: If observations have no axis of frames, or there are 2**31 frames or more.
    """

    def __init__(
        self, spec: ReplaySpec, rule: SamplingRule, *, spare: float = _SPARE, may_grow: bool = True
    ) -> None:
        shape, dtype = spec.observation
        if len(shape) < 2:
            raise ValueError(
                "frames share memory where observations are stacks [k, ...], not of shape "
                f"{list(shape)}: use Replay"
            )
        self._stack = shape[0]
        super().__init__(spec, rule)
        least = 2 * self._stack * (self._stack + 1) * spec.num_envs
        count = max(int(self.capacity * (1 + spare)), self.capacity + least)
        if count >= 2**31:
            raise ValueError(f"{count} frames are more than can be numbered: lower the capacity")
        limit = min(2 * self._stack * self.capacity + least, 2**31 - 1)
        self._numbered = max(count, limit) if may_grow else count
        """Frame numbers are modulo this; it is at least the size of the frame buffer.

        It does not change when the buffer grows, so stored rows keep their frame numbers.
        """
        self._frames = np.zeros((count, *shape[1:]), dtype)
        self._added = 0
        self._oldest = np.zeros(self._steps, np.int64)
        self._intact = 0

    def state_dict(self) -> StateTree:
        """Returns the state; rows and frames are `RowStream`s."""
        own = {
            "added": self._added,
            "room": len(self._frames),
            "numbered": self._numbered,
            "oldest": self._oldest,
            "intact": self._intact,
        }
        return {
            **super().state_dict(),
            **own,
            "frames": RowStream({"frame": self._frames}, self._added),
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the memory from `state`.

        Raises:
            ValueError: If `state` is of a memory with other fields or frames, another capacity,
                number of environments or rule.
        """
        self._check_frames(state)
        super().load_state_dict(state)
        frames, room = state["frames"]["frame"], int(state["room"])
        if room != len(self._frames):
            self._frames = np.zeros((room, *self._frames.shape[1:]), self._frames.dtype)
        self._frames[: len(frames)] = frames
        self._numbered = int(state["numbered"])
        self._added, self._intact = int(state["added"]), int(state["intact"])
        self._oldest[:] = state["oldest"]
        for step in range(self.written - self._filled, self._intact):
            self._drop(step % self._steps)

    def _observation_fields(self) -> dict[str, Field]:
        numbers: Field = ((self._stack,), np.int32)
        return {"observation": numbers, "next_observation": numbers}

    def _write_observations(self, begin: int, rows: Rows) -> None:
        active = np.ones(rows.ended.shape, np.bool_) if rows.active is None else rows.active
        self._intact = max(self._intact, self.written + len(active) - self._steps)
        for t in range(len(active)):
            place = begin + t
            self._make_room(self.written + t)
            self._write_step(place, rows.observation[t], rows.next_observation[t], active[t])
            self._drop_overwritten_rows(place, active[t])

    def _observations(self, rows: Mapping[str, Array], last: Places | None) -> tuple[Array, Array]:
        observation, successor = super()._observations(rows, last)
        return self._read_frames(observation), self._read_frames(successor)

    def _read_frames(self, numbers: Array) -> Array:
        """Returns the frames [..., k, ...] of numbers [..., k]."""
        room = len(self._frames)
        if room < self._numbered:
            newest = self._added - 1
            numbers = (newest - (newest - numbers.astype(np.int64)) % self._numbered) % room
        return self._frames.take(numbers, axis=0)

    def _make_room(self, row: int) -> None:
        """Enlarges the frame buffer if writing vector step `row` might overwrite a frame in use."""
        oldest = (
            int(self._oldest[self._intact % self._steps]) if self._intact < row else self._added
        )
        needed, room = self._added - oldest + 2 * self._stack * self._num_envs, len(self._frames)
        if needed <= room or room == self._numbered:
            return
        larger = np.zeros(
            (min(max(room + room // 4, needed), self._numbered), *self._frames.shape[1:]),
            self._frames.dtype,
        )
        for begin in range(oldest, self._added, _PIECE):
            numbers = np.arange(begin, min(begin + _PIECE, self._added))
            larger[numbers % len(larger)] = self._frames[numbers % room]
        self._frames = larger

    def _write_step(self, place: int, observation: Array, successor: Array, active: Array) -> None:
        """Writes the observations [B, k, ...] of one vector step into row `place`.

        No frames are stored for slots that waited, where `active` is false.
        """
        stacks, successors = (
            self._columns["observation"][place],
            self._columns["next_observation"][place],
        )
        stacks[:] = self._columns["next_observation"][place - 1]
        follows = (
            ~_differ(self._read_frames(stacks), observation)
            & self._columns["live"][place - 1]
            & (self._added > 0)
        )
        if not follows.all():
            for slot in np.flatnonzero(active & ~follows):
                stacks[slot] = self._add_stack(observation[slot])
        successors[:, :-1] = stacks[:, 1:]
        moved = ~_differ(observation[:, 1:], successor[:, :-1])
        added = active & moved
        successors[added, -1] = self._add(successor[added, -1])
        if not moved.all():
            for slot in np.flatnonzero(active & ~moved):
                successors[slot] = self._add_stack(successor[slot])

    def _drop_overwritten_rows(self, place: int, active: Array) -> None:
        """Drops the rows with a frame that was overwritten when row `place` was written.

        The first frame of a stack is its oldest, and no row needs an older frame than the row
        before, so rows are dropped from the oldest on.
        """
        room, newest = len(self._frames), self._added - 1
        ages = (
            newest - self._columns["observation"][place, active, 0].astype(np.int64)
        ) % self._numbered
        self._oldest[place] = newest - int(ages.max(initial=-1))
        while self._oldest[self._intact % self._steps] < self._added - room:
            self._drop(self._intact % self._steps)
            self._intact += 1

    def _add_stack(self, stack: Array) -> npt.NDArray[np.int64]:
        """Stores the frames of a stack [k, ...] and returns their numbers int64 [k].

        A frame that equals the previous frame of the stack is not stored again.
        """
        new = np.concatenate(([True], _differ(stack[1:], stack[:-1])))
        numbers: npt.NDArray[np.int64] = self._add(stack[new])[np.cumsum(new) - 1]
        return numbers

    def _add(self, frames: Array) -> npt.NDArray[np.int64]:
        """Stores frames [n, ...] and returns their numbers int64 [n]."""
        added = self._added + np.arange(len(frames))
        self._frames[added % len(self._frames)] = frames
        self._added += len(frames)
        return added % self._numbered

    def _check_frames(self, state: StateTree) -> None:
        if "frames" not in state:
            raise ValueError(
                "the stored memory keeps whole observations, this one shares frames: store and "
                "load with the same kind"
            )
        frames, room = state["frames"]["frame"], int(state["room"])
        numbered, count = int(state["numbered"]), min(int(state["added"]), room)
        expected, given = (
            (count, *self._frames.shape[1:], self._frames.dtype),
            (*frames.shape, frames.dtype),
        )
        if (
            given != expected
            or numbered != self._numbered
            or not len(self._frames) <= room <= numbered
        ):
            differences = (
                f"room is {room}, count, shape and dtype are {given}, here {len(self._frames)} and "
                f"{expected}"
            )
            raise ValueError(f"the stored frames do not fit this memory: {differences}")


def _differ(first: Array, second: Array) -> npt.NDArray[np.bool_]:
    """Returns bool [n]: whether the entries of two arrays [n, ...] differ anywhere."""
    different: npt.NDArray[np.bool_] = (first != second).any(tuple(range(1, first.ndim)))
    return different
