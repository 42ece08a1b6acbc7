"""Reads the points, episodes, evaluations or epochs of runs as rows of an export.

Loads pyarrow, as `record_files` does.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from app.db.engine import BACKGROUND_STATEMENT_SECONDS, Database
from app.db.repositories import epochs, queried_runs
from app.db.repositories import stored_points as rows
from app.db.repositories.queried_runs import QueriedRun
from app.db.repositories.stored_points import StoredEvaluation, StoredSeries
from app.metrics import blocks, fence_chain
from app.metrics.columns import UNKNOWN, Columns, Floats, Ints
from app.metrics.grid import round_to_milliseconds, to_position
from app.metrics.sort_records import EPISODE_LENGTH, EPISODE_RETURN
from app.services.curves import record_files, stored_epochs, stored_points
from app.services.curves.stored_epochs import StoredEpochRecord
from app.services.curves.stored_points import PointsMissingError, PointState, Section
from palestra.contract.record_exports import RecordQuery
from palestra.contract.telemetry import Evaluation

_EVALUATIONS: Final = 16
"""Evaluations that are in memory at once; each may hold 100,000 returns."""
_EPOCH_COUNTERS: Final = {
    "total_epoch": "total_epoch",
    "total_itr": "total_itr",
    "env_step": "total_env_steps",
    "update": "update",
    "episode": "episode",
}
"""Members of an `EpochStatsRecord` by column."""
_SECOND: Final = 1_000.0
_MAX_POINTS_OF_RECORD: Final = 2**17
"""More than the points of a series in one record."""


@dataclass(frozen=True, slots=True)
class ExportedRuns:
    """What an export reads, and the names in its rows.

    Attributes:
        run_ids: The runs in order.
        runs: The runs as the caller's rights were checked.
        names: Names of the wanted series of points, in order.
    """

    run_ids: Sequence[str]
    runs: Mapping[str, QueriedRun]
    names: Sequence[str]


class RecordRows:
    """The rows of an export.

    Args:
        database: The database.
        wanted: What to export.
        exported: The runs.
        schema: Columns of the rows.

    Attributes:
        span: Lowest and highest position on x of the rows in and out of the range; `None` before
            there is one.
    """

    def __init__(
        self, database: Database, wanted: RecordQuery, exported: ExportedRuns, schema: pa.Schema
    ) -> None:
        self.span: tuple[int, int] | None = None
        self._database = database
        self._wanted = wanted
        self._exported = exported
        self._schema = schema
        self._run_names = pa.array(exported.run_ids, pa.string())
        self._series_names = pa.array(exported.names, pa.string())
        self._codes = {name: code for code, name in enumerate(exported.names)}
        self._low = _to_position(wanted, wanted.start, upwards=True)
        self._high = _to_position(wanted, wanted.end, upwards=False)

    async def read(self) -> AsyncIterator[pa.RecordBatch]:
        """Yields the rows, which are in one state of the database for each run.

        Raises:
            PointsMissingError: If a run was deleted, or moved to another project, meanwhile.
        """
        read = {
            "points": self._read_points,
            "episodes": self._read_episodes,
            "evaluations": self._read_evaluations,
            "epochs": self._read_epochs,
        }[self._wanted.kind]
        for place, run_id in enumerate(self._exported.run_ids):
            async for batch in read(run_id, place):
                if batch.num_rows:
                    yield batch

    async def _load_state(self, run_id: str, names: set[str]) -> tuple[PointState, Any]:
        """Returns the state of a run, with its evaluations or number of epochs if exported."""
        async with self._database.read(BACKGROUND_STATEMENT_SECONDS) as session:
            found = await queried_runs.load_runs(session, [run_id])
            if (
                run_id not in found
                or found[run_id].project_id != self._exported.runs[run_id].project_id
            ):
                raise PointsMissingError(f"{run_id} was deleted or moved")
            state = await stored_points.load_state(session, run_id, names)
            if self._wanted.kind == "epochs":
                return state, await epochs.count(session, run_id)
            if self._wanted.kind == "evaluations":
                return state, await rows.list_evaluations(session, run_id)
            return state, ()

    async def _read_points(self, run_id: str, place: int) -> AsyncIterator[pa.RecordBatch]:
        state, _ = await self._load_state(run_id, set(self._codes))
        for group in _group_series(state.series):
            if group[0].points <= stored_points.PAGE_POINTS:
                page = await stored_points.read_small_series(self._database, state, group)
                yield await asyncio.to_thread(self._build_points, state, place, page)
                continue
            async for page in stored_points.read_series(self._database, state, group):
                yield await asyncio.to_thread(self._build_points, state, place, page)

    def _build_points(
        self, state: PointState, place: int, page: Sequence[Section]
    ) -> pa.RecordBatch:
        sizes = [len(section.columns) for section in page]
        columns = blocks.concatenate(section.columns for section in page)
        codes = np.repeat([self._codes[section.name] for section in page], sizes)
        return self._build(
            {
                **_list_axes(columns, state.origin),
                "value": columns.value,
                "series": record_files.repeat_name(self._series_names, codes.astype(np.int32)),
                "fence": np.repeat([section.key.fence for section in page], sizes),
                "superseded": _join_masks([section.superseded for section in page]),
            },
            place,
        )

    async def _read_episodes(self, run_id: str, place: int) -> AsyncIterator[pa.RecordBatch]:
        state, _ = await self._load_state(run_id, {EPISODE_RETURN, EPISODE_LENGTH})
        if len(state.series) == len((EPISODE_RETURN, EPISODE_LENGTH)):
            async for page in stored_points.read_series(self._database, state, state.series):
                for episodes in await asyncio.to_thread(self._build_episodes, state, place, page):
                    yield episodes

    def _build_episodes(
        self, state: PointState, place: int, page: Sequence[Section]
    ) -> list[pa.RecordBatch]:
        found = []
        for one in _pair_episodes(page):
            returns, lengths = one.returns, one.lengths
            whole = np.isfinite(lengths.value)
            found.append(
                self._build(
                    {
                        **_list_axes(returns, state.origin),
                        "env_index": _read_extra(lengths, "env_index"),
                        "terminated": _read_extra(lengths, "terminated").cast(pa.bool_()),
                        "episode_return": returns.value,
                        "episode_length": pa.array(
                            np.where(whole, lengths.value, 0.0).astype(np.int64), mask=~whole
                        ),
                        "fence": np.full(len(returns), one.fence),
                        "superseded": one.superseded,
                    },
                    place,
                )
            )
        return found

    async def _read_evaluations(self, run_id: str, place: int) -> AsyncIterator[pa.RecordBatch]:
        state, stored = await self._load_state(run_id, set())
        listed = [
            one
            for one in stored
            if one.seq <= state.acked.get(one.attempt_id, 0)
            and (self._wanted.superseded or not one.superseded)
        ]
        origin = state.origin
        if origin is None:
            walls = [record.wall async for some in self._load_records(listed) for _, record in some]
            origin = _find_earliest(walls)
        async for some in self._load_records(listed):
            yield self._build_evaluations(some, origin, place)

    async def _load_records(
        self, listed: Sequence[StoredEvaluation]
    ) -> AsyncIterator[list[tuple[StoredEvaluation, Evaluation]]]:
        for first in range(0, len(listed), _EVALUATIONS):
            some = listed[first : first + _EVALUATIONS]
            async with self._database.read(BACKGROUND_STATEMENT_SECONDS) as session:
                bodies = await rows.load_evaluation_bodies(session, [one.id for one in some])
            if len(bodies) < len(some):
                raise PointsMissingError("evaluations were deleted")
            yield await asyncio.to_thread(_parse_evaluations, some, bodies)

    def _build_evaluations(
        self,
        some: Sequence[tuple[StoredEvaluation, Evaluation]],
        origin: int | None,
        place: int,
    ) -> pa.RecordBatch:
        names = [name for name in self._schema.names if name in Evaluation.model_fields]
        columns: dict[str, Any] = {
            name: [getattr(record, name) for _, record in some] for name in names
        }
        columns |= {
            name: np.array([getattr(record, name) for _, record in some], np.int64)
            for name in ("env_step", "update", "episode")
        }
        wall = np.array([record.wall for _, record in some], np.float64)
        columns |= {"wall": wall, "relative": _compute_relative(wall, origin)}
        if "source" in columns:
            columns["source"] = [record.source for _, record in some]
        if "metrics" in columns:
            columns["metrics"] = [_list_metrics(record.metrics) for _, record in some]
        columns |= {
            name: [getattr(one, name) for one, _ in some] for name in ("id", "fence", "superseded")
        }
        columns["superseded"] = np.array(columns["superseded"], np.bool_)
        return self._build(columns, place)

    async def _read_epochs(self, run_id: str, place: int) -> AsyncIterator[pa.RecordBatch]:
        state, total = await self._load_state(run_id, set())
        origin = state.origin
        if origin is None:
            pages = stored_epochs.read_epochs(self._database, state, total)
            origin = _find_earliest([one.record.wall async for page in pages for one in page])
        async for page in stored_epochs.read_epochs(self._database, state, total):
            yield self._build_epochs(page, replace(state, origin=origin), place)

    def _build_epochs(
        self, page: Sequence[StoredEpochRecord], state: PointState, place: int
    ) -> pa.RecordBatch:
        records = [one.record for one in page]
        columns: dict[str, Any] = {
            name: np.array([getattr(record, member) for record in records], np.int64)
            for name, member in _EPOCH_COUNTERS.items()
        }
        wall = np.array([record.wall for record in records], np.float64)
        columns |= {"wall": wall, "relative": _compute_relative(wall, state.origin)}
        columns["last_episode"] = [
            record.last_episode and [_list_metrics(one) for one in record.last_episode]
            for record in records
        ]
        columns["fence"] = [one.fence for one in page]
        columns["superseded"] = np.array(
            [not fence_chain.is_in_history(state.history, one.fence, one.position) for one in page],
            np.bool_,
        )
        return self._build(columns, place)

    def _build(self, columns: dict[str, Any], place: int) -> pa.RecordBatch:
        """Returns the rows in the range, without the superseded ones unless they are wanted."""
        count = len(columns["superseded"])
        columns["run_id"] = record_files.repeat_name(self._run_names, np.full(count, place))
        batch = record_files.build_batch(self._schema, columns)
        keep = np.ones(count, np.bool_) if self._wanted.superseded else ~columns["superseded"]
        positions = self._find_positions(columns)
        shown = positions[keep]
        if len(shown):
            low, high = int(shown.min()), int(shown.max())
            before = self.span or (low, high)
            self.span = min(before[0], low), max(before[1], high)
        if self._low is not None:
            keep &= positions >= self._low
        if self._high is not None:
            keep &= positions <= self._high
        return batch if bool(keep.all()) else batch.filter(pa.array(keep))

    def _find_positions(self, columns: Mapping[str, Any]) -> Ints:
        values = columns[self._wanted.x]
        if self._wanted.x in {"wall", "relative"}:
            return round_to_milliseconds(values)
        return np.asarray(values, np.int64)


def _list_metrics(metrics: Mapping[str, float]) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in metrics.items()]


def _find_earliest(walls: Sequence[float]) -> int | None:
    """Returns the earliest of some times in milliseconds."""
    return int(round_to_milliseconds(np.array([min(walls)]))[0]) if walls else None


def _parse_evaluations(
    some: Sequence[StoredEvaluation], bodies: Mapping[str, str]
) -> list[tuple[StoredEvaluation, Evaluation]]:
    return [(one, Evaluation.model_validate_json(bodies[one.id])) for one in some]


def _to_position(wanted: RecordQuery, x: float | None, *, upwards: bool) -> int | None:
    return None if x is None else to_position(wanted.x, x, upwards=upwards)


def _group_series(series: Sequence[StoredSeries]) -> Iterator[list[StoredSeries]]:
    """Yields neighbouring series that fit into a page together, and each larger one alone."""
    group: list[StoredSeries] = []
    points = 0
    for one in series:
        if group and points + one.points > stored_points.PAGE_POINTS:
            yield group
            group, points = [], 0
        group.append(one)
        points += one.points
    if group:
        yield group


def _list_axes(columns: Columns, origin: int | None) -> dict[str, Any]:
    return {
        "env_step": columns.env_step,
        "update": columns.update,
        "episode": columns.episode,
        "wall": columns.wall,
        "relative": _compute_relative(columns.wall, origin),
    }


def _compute_relative(wall: Floats, origin: int | None) -> Floats:
    return (round_to_milliseconds(wall) - (origin or 0)) / _SECOND


def _join_masks(masks: Sequence[npt.NDArray[np.bool_]]) -> npt.NDArray[np.bool_]:
    return np.concatenate(masks) if masks else np.zeros(0, np.bool_)


def _read_extra(columns: Columns, name: str) -> pa.Array:
    """Returns a further column; NULL for episodes that were stored without it."""
    found = columns.extra.get(name)
    if found is None:
        return pa.nulls(len(columns), pa.int64())
    return pa.array(found, pa.int64(), mask=found == UNKNOWN)


def _pair_episodes(page: Sequence[Section]) -> Iterator["_Episodes"]:
    """Yields the returns and lengths of the same episodes, attempt by attempt."""
    by_attempt: dict[tuple[int, str], dict[str, list[Section]]] = {}
    for section in page:
        of_attempt = by_attempt.setdefault(section.key[:2], {})
        of_attempt.setdefault(section.name, []).append(section)
    for (fence, _), found in by_attempt.items():
        if len(found) < len((EPISODE_RETURN, EPISODE_LENGTH)):
            continue
        returns, lengths = (
            blocks.concatenate(section.columns for section in found[name])
            for name in (EPISODE_RETURN, EPISODE_LENGTH)
        )
        superseded = _join_masks([section.superseded for section in found[EPISODE_RETURN]])
        if not np.array_equal(returns.seq, lengths.seq):
            _, left, right = np.intersect1d(
                _number(returns), _number(lengths), assume_unique=True, return_indices=True
            )
            returns, lengths = blocks.select(returns, left), blocks.select(lengths, right)
            superseded = superseded[left]
        yield _Episodes(fence, returns, lengths, superseded)


@dataclass(frozen=True, slots=True)
class _Episodes:
    """Episodes of one attempt: points of the two series at the same places."""

    fence: int
    returns: Columns
    lengths: Columns
    superseded: npt.NDArray[np.bool_]


def _number(columns: Columns) -> Ints:
    """Returns a number for each point: of its record, and of its place among the record's."""
    seq = columns.seq
    is_first = np.append(True, seq[1:] != seq[:-1])
    first = np.maximum.accumulate(np.where(is_first, np.arange(len(seq)), 0))
    return seq * _MAX_POINTS_OF_RECORD + np.arange(len(seq)) - first
