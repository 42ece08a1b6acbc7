"""Decides which blocks of a series are merged with new points, and cuts points into blocks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from app.metrics import blocks, pyramid
from app.metrics.blocks import Columns

FAN_IN: Final = 8
"""Blocks of about one size that are merged into the next size."""
COMPLETE: Final = blocks.MAX_POINTS // 2
"""Points from which a block is not merged any more."""
_TIER_BITS: Final = 3


class StoredSize(Protocol):
    """Size of a stored block."""

    @property
    def id(self) -> int:
        """ID of the block."""

    @property
    def points(self) -> int:
        """Number of its points."""

    @property
    def levels(self) -> int:
        """See `pyramid.pack_levels`; 0 without rollups."""


@dataclass(frozen=True, slots=True)
class BuiltBlock:
    """A block to store, with the cells of its pyramids."""

    first_seq: int
    last_seq: int
    points: int
    ranges: Mapping[str, tuple[int, int]]
    """Lowest and highest position by axis."""
    levels: int
    content: bytes
    cells: Mapping[tuple[int, int], bytes]
    """Encoded cells by place of the axis and level."""


def choose_merged(stored: Sequence[StoredSize], new: int) -> list[int]:
    """Returns the IDs of the blocks that are merged with new points, in their order.

    Args:
        stored: Blocks of one series and attempt in order; new points follow them.
        new: Number of new points.
    """
    begin, total = len(stored), new
    while True:
        first = begin
        while first and _tier(stored[first - 1].points) <= _tier(total):
            first -= 1
        if begin - first + 1 < FAN_IN:
            return [one.id for one in stored[begin:]]
        total += sum(one.points for one in stored[first:begin])
        begin = first


def choose_rewritten(stored: Sequence[StoredSize], most_points: int) -> list[int]:
    """Returns the IDs of neighbouring blocks that should be rewritten when no points follow.

    Those are several small ones, and those that have rollups only because points followed. Call it
    again after the rewriting until it returns none.

    Args:
        stored: Blocks of one series and attempt in order.
        most_points: Points at which no further block is added.
    """
    section: list[StoredSize] = []
    for one in stored:
        if one.points >= COMPLETE:
            if _is_worth_it(section):
                break
            section = []
            continue
        section.append(one)
        if sum(member.points for member in section) >= most_points:
            break
    return [one.id for one in section] if _is_worth_it(section) else []


def build_blocks(columns: Columns, *, is_live: bool = False) -> Iterator[BuiltBlock]:
    """Yields the blocks of points, which are in the order of their records.

    Args:
        columns: Points of one series and attempt.
        is_live: More points will follow: several blocks wait until they are merged, so smaller ones
            have rollups.
    """
    least = pyramid.LEAST_LIVE_POINTS if is_live else pyramid.LEAST_POINTS
    for first in range(0, len(columns), blocks.MAX_POINTS):
        yield _build_block(blocks.select(columns, slice(first, first + blocks.MAX_POINTS)), least)


def _is_worth_it(section: Sequence[StoredSize]) -> bool:
    return len(section) > 1 or any(
        one.levels > 0 and one.points < pyramid.LEAST_POINTS for one in section
    )


def _tier(points: int) -> int:
    return points.bit_length() // _TIER_BITS if points < COMPLETE else blocks.MAX_POINTS


def _build_block(columns: Columns, least_points: int) -> BuiltBlock:
    ranges: dict[str, tuple[int, int]] = {}
    levels: list[tuple[int, int]] = []
    cells: dict[tuple[int, int], bytes] = {}
    for place, axis in enumerate(pyramid.AXES):
        positions = pyramid.find_positions(columns, axis)
        ranges[axis] = int(positions.min()), int(positions.max())
        if len(columns) >= least_points:
            found = pyramid.build(positions, columns.value)
            levels.append((min(found), max(found)))
            cells |= {(place, level): pyramid.encode(one) for level, one in found.items()}
    return BuiltBlock(
        int(columns.seq[0]),
        int(columns.seq[-1]),
        len(columns),
        ranges,
        pyramid.pack_levels(levels) if levels else 0,
        blocks.encode(columns),
        cells,
    )
