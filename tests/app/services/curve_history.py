"""A run whose telemetry a test sends in any order, and the list of points that it should read as.

Every batch goes through the ingest service; nothing here decodes what the server stored.
"""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import pytest

from app.db.repositories import compaction as compaction_rows
from app.domain.errors import ConflictError
from app.services.telemetry import batches, compaction
from palestra.contract.queries import SeriesResult
from palestra.contract.telemetry import write_number
from tests.support.artifact_store import AttemptWithStore
from tests.support.records import Json, make_delivery

NAMES = ("a", "b", "c/d")
BASE = 1_700_000_000.0
DENORMAL = Fraction(5e-324)
_VALUES = (math.nan, math.inf, -math.inf, -0.0, 0.0, 5e-324, -1e-323, 2.0**53 - 1, 1e308, -1e308)


class Sent(NamedTuple):
    """A point that was acknowledged."""

    fence: int
    name: str
    env_step: int
    update: int
    episode: int
    wall: float
    value: float


class Started(NamedTuple):
    """An attempt, and where it resumed: the fence of a snapshot and its position."""

    fence: int
    resumed: tuple[int, tuple[int, int]] | None


class CrashError(Exception):
    """The server was killed."""


@dataclass
class CurveHistory:
    """What a run's attempts sent, with the actions that a test may take."""

    rows: ClassVar[ModuleType] = compaction_rows
    """Replaces rows by blocks, in the transaction of a compaction."""

    run: AttemptWithStore
    chooser: random.Random
    monkeypatch: pytest.MonkeyPatch
    points: list[Sent] = field(default_factory=list)
    attempts: list[Started] = field(default_factory=lambda: [Started(1, None)])
    snapshots: list[tuple[int, int]] = field(default_factory=list)
    """Fence and env_step."""
    latest: tuple[int, list[Json]] | None = None

    @property
    def fence(self) -> int:
        """Fence of the live attempt."""
        return self.attempts[-1].fence

    async def act(self, action: str) -> None:
        """Takes one action by its name."""
        await getattr(self, action)()

    async def send(self) -> None:
        """Sends a batch of one to three records."""
        await self._deliver(self._make_records())

    async def repeat(self) -> None:
        """Sends the latest batch again, alone or followed by new records."""
        if self.latest is None:
            return
        first_seq, content = self.latest
        new = self._make_records() if self.chooser.random() < 0.5 else []
        await self._take(first_seq, [*content, *new])
        self._acknowledge(first_seq + len(content), new)
        self.latest = first_seq, [*content, *new]

    async def reorder(self) -> None:
        """Sends two batches, the second one first, which is refused until the first is there."""
        first, second = self._make_records(), self._make_records()
        with pytest.raises(ConflictError):
            await self._take(self.run.seq + 1 + len(first), second)
        await self._deliver(first)
        await self._deliver(second)

    async def crash(self) -> None:
        """Kills the server before it commits a batch, which is then sent again."""
        content = self._make_records()
        with pytest.raises(CrashError):
            await self._take(self.run.seq + 1, content, is_killed=True)
        if self.chooser.random() < 0.8:
            await self._deliver(content)

    async def compact(self) -> None:
        """Moves the tail into blocks."""
        await compaction.compact_tail(self.run.database, self.run.run_id)

    async def rewrite(self) -> None:
        """Merges blocks."""
        await compaction.rewrite_blocks(self.run.database, self.run.run_id)

    async def crash_compaction(self) -> None:
        """Kills the compactor before it commits."""
        replace = self.rows.replace

        async def fail(*arguments: Any) -> None:
            await replace(*arguments)
            raise CrashError

        with self.monkeypatch.context() as patch:
            patch.setattr(self.rows, "replace", fail)
            try:
                await self.compact()
            except CrashError:
                return

    async def snapshot(self) -> None:
        """Writes a snapshot at a step among those of the points."""
        env_step = self.chooser.randrange(60)
        await self.run.write_snapshot(env_step)
        self.snapshots.append((self.fence, env_step))
        self.latest = None

    async def resume(self) -> None:
        """Loses the attempt; the next one resumes from the newest snapshot that counts."""
        if len(self.attempts) > 1:
            return  # the server waits before it tries a job again that was lost twice
        counting = [
            (fence, env_step)
            for fence, env_step in self.snapshots
            if self.counts(fence, (env_step, 0))
        ]
        source = max(counting, default=None)
        await self.run.resume(len(self.attempts) + 1)
        resumed = None if source is None else (source[0], (source[1], 0))
        self.attempts.append(Started(self.fence + 1, resumed))
        self.latest = None

    def counts(self, fence: int, position: tuple[int, int]) -> bool:
        """Returns whether what an attempt wrote at (env_step, update) is not superseded."""
        by_fence = {one.fence: one for one in self.attempts}
        current: Started | None = self.attempts[-1]
        bounds: list[tuple[int, int]] = []
        while current is not None:
            if current.fence == fence:
                return all(position <= bound for bound in bounds)
            if current.resumed is None:
                return False
            bounds.append(current.resumed[1])
            current = by_fence[current.resumed[0]]
        return False

    def list_points(self, name: str, *, superseded: bool) -> list[Sent]:
        """Returns the points of a series as they should be read."""
        return [
            one
            for one in sorted(self.points, key=lambda point: point.fence)
            if one.name == name
            and (superseded or self.counts(one.fence, (one.env_step, one.update)))
        ]

    async def _deliver(self, content: list[Json]) -> None:
        await self._take(self.run.seq + 1, content)
        self.latest = self.run.seq + 1, content
        self._acknowledge(self.run.seq + 1, content)

    async def _take(
        self, first_seq: int, content: Sequence[Json], *, is_killed: bool = False
    ) -> None:
        async with self.run.database.write() as session:
            await batches.take(session, make_delivery(self.run.attempt_id, first_seq, content))
            if is_killed:
                raise CrashError

    def _acknowledge(self, first_seq: int, content: Sequence[Json]) -> None:
        self.run.seq = max(self.run.seq, first_seq + len(content) - 1)
        for record in content:
            columns = record.get("series")
            series = columns if isinstance(columns, dict) else {columns: record["value"]}
            for name, values in series.items():
                axes = (record[axis] for axis in ("env_step", "update", "episode", "wall"))
                for *position, value in zip(*axes, values, strict=True):
                    self.points.append(Sent(self.fence, str(name), *position, float(value)))

    def _make_records(self) -> list[Json]:
        return [self._make_record() for _ in range(self.chooser.randint(1, 3))]

    def _make_record(self) -> Json:
        choose = self.chooser
        count = choose.randint(1, 12)
        begin = choose.choice((0, 0, 20, 40, 900, 2**53 - 1 - 12))
        steps = [begin + place for place in range(count)]
        if choose.random() < 0.4:
            choose.shuffle(steps)
        axes = {
            "env_step": steps,
            "update": [choose.choice((0, 0, 1, 5, 700)) for _ in steps],
            "episode": [step // 4 for step in steps],
            "wall": [BASE + choose.choice((step, 1e-3 * step, 0.0004)) % 1e6 for step in steps],
        }
        columns = [
            [write_number(choose.choice((*_VALUES, choose.uniform(-9, 9)))) for _ in steps]
            for _ in range(choose.randint(1, 2))
        ]
        if len(columns) == 1:
            name = choose.choice(NAMES)
            return {"type": "points", "run": self.run.run_id, "series": name, **axes,
                    "value": columns[0]}  # fmt: skip
        series = dict(zip(choose.sample(NAMES, len(columns)), columns, strict=True))
        return {"type": "table", "run": self.run.run_id, **axes, "series": series}


def find_position(point: Sent, axis: str) -> int:
    """Returns the position of a point on an axis: a counter, or milliseconds."""
    if axis in {"wall", "relative"}:
        return round(point.wall * 1_000)
    found: int = getattr(point, axis)
    return found


def check_answer(answer: SeriesResult, curves: dict[str, list[Sent]], origin: int) -> None:
    """Asserts that curves on the answer's grid are what their lists of points give."""
    scale = 1_000 if answer.x in {"wall", "relative"} else 1
    width, first = round(answer.width * scale), round(answer.start * scale)
    assert first % width == 0
    for curve in answer.series:
        held: list[list[float]] = [[] for _ in answer.grid]
        for point in curves[curve.series]:
            moved = find_position(point, answer.x) // width - origin // width
            place = moved - first // width
            if 0 <= place < len(held):
                held[place].append(point.value)
        for place, values in enumerate(held):
            found = {name: getattr(curve, name)[place] for name in _COLUMNS}
            check_bucket(found, values)


_COLUMNS = ("n", "nonfinite", "min", "max", "last", "mean")


def check_bucket(found: dict[str, Any], values: list[float]) -> None:
    """Asserts that the aggregates of a bucket are those of its values."""
    finite = [value for value in values if math.isfinite(value)]
    assert found["n"] == len(values)
    assert found["nonfinite"] == len(values) - len(finite)
    if not finite:
        assert [found[name] for name in _COLUMNS[2:]] == [None] * 4
        return
    assert (found["min"], found["max"]) == (min(finite), max(finite))
    assert (found["last"], math.copysign(1, found["last"])) == (
        finite[-1],
        math.copysign(1, finite[-1]),
    )
    exact = [Fraction(value) for value in finite]
    error = abs(Fraction(found["mean"]) * len(finite) - sum(exact))
    assert error <= Fraction(1, 10**9) * sum(map(abs, exact)) + len(finite) * DENORMAL


def iterate_ranges(points: Sequence[Sent], axis: str) -> Iterator[tuple[int | None, int | None]]:
    """Yields the whole range of an axis, and the part of it around the median point."""
    yield None, None
    ordered = sorted(find_position(point, axis) for point in points)
    if ordered:
        yield ordered[len(ordered) // 3], ordered[2 * len(ordered) // 3]
