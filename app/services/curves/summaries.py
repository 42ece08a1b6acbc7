"""Summarises the series of runs, by which lists are sorted and filtered.

New points are added to the summary of their series. A run whose history changed, because an attempt
raised its fence, is summarised anew, so superseded points do not count. All is derived from the
stored curves and evaluations and can be built again at any time.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from app.db.engine import Database, Session
from app.db.models.summaries import ThresholdRow
from app.db.repositories import blocks as block_rows
from app.db.repositories import experiments as experiment_rows
from app.db.repositories import summaries as rows
from app.db.repositories.blocks import Tail
from app.db.repositories.summaries import (
    KeptCrossing,
    NewSummary,
    SummarisedRun,
    SummaryState,
)
from app.metrics import blocks, point_tables
from app.metrics.columns import Columns
from app.metrics.fence_chain import Chain
from app.metrics.sort_records import VIRTUAL, parse_evaluation_series
from app.metrics.summaries import Crossing, Goal, SeriesSummary, Threshold, read_recent
from app.services.curves import series, stored_curves
from palestra.contract.definition import SupervisedEvaluation
from palestra.contract.telemetry import Evaluation
from palestra.contract.upgrade import load_definition

RUNS_PER_TRANSACTION: Final = 25
"""Runs of one transaction."""
_ROUNDS: Final = 5
"""Times that the summary of a run is computed if other processes write it meanwhile."""
_BLOCKS_AT_ONCE: Final = 16
_MAX_PLACES: Final = 200
"""Attempts of which a query for new points names the last known record."""
_RL: Final = "rl"


@dataclass(slots=True)
class _Work:
    """The summary of a run while it is computed."""

    run: SummarisedRun
    state: SummaryState | None
    is_anew: bool
    minimised: str | None
    """Metric of evaluations whose best value is the lowest."""
    thresholds: Mapping[str, Mapping[int, Threshold]]
    """Thresholds by series and ID."""
    places: dict[str, int] = field(default_factory=dict)
    first_wall: float | None = None
    series: dict[str, SeriesSummary] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    stored_crossings: Mapping[int, KeptCrossing] = field(default_factory=dict)

    def add(self, name: str, columns: Columns) -> None:
        if not len(columns):
            return
        first = float(columns.wall.min())
        self.first_wall = first if self.first_wall is None else min(first, self.first_wall)
        self.get(name).add(columns.env_step, columns.wall, columns.value, self.thresholds.get(name))

    def get(self, name: str) -> SeriesSummary:
        self.changed.add(name)
        return self.series.setdefault(name, SeriesSummary(self.find_goal(name)))

    def find_goal(self, name: str) -> Goal:
        made = parse_evaluation_series(name)
        return "minimize" if made is not None and made[1] == self.minimised else "maximize"

    def add_evaluations(self, found: Sequence[Evaluation]) -> None:
        """Replaces the summaries of the series that are computed from evaluations."""
        for prefix, source in VIRTUAL.items():
            of_source = [one for one in found if one.source is source]
            of_source.sort(key=lambda one: (one.env_step, one.update))
            for statistic in series.list_statistics(of_source) if of_source else ():
                self._add_statistic(f"{prefix}/{statistic}", statistic, of_source)

    def _add_statistic(self, name: str, statistic: str, found: Sequence[Evaluation]) -> None:
        having = [
            (one.env_step, one.wall, value)
            for one in found
            if (value := series.read_statistic(one, statistic)) is not None
        ]
        self.series.pop(name, None)
        if having:
            steps, walls, values = zip(*having, strict=True)
            self.get(name).add(
                np.array(steps, np.int64),
                np.array(walls, np.float64),
                np.array(values, np.float64),
                self.thresholds.get(name),
            )
            first = min(walls)
            self.first_wall = first if self.first_wall is None else min(first, self.first_wall)

    def build(self) -> NewSummary:
        written = {name: _write(self.series[name]) for name in self.changed if name in self.series}
        # All of them: the run's first point may be an earlier one now.
        crossings = {
            threshold_id: KeptCrossing(one.env_step, one.wall, one.wall - (self.first_wall or 0.0))
            for summary in self.series.values()
            for threshold_id, one in summary.crossings.items()
        }
        crossings = dict(crossings.items() - self.stored_crossings.items())
        return NewSummary(
            self.run, self.state, self.places, self.first_wall, self.is_anew, written, crossings
        )


def _write(summary: SeriesSummary) -> dict[str, Any]:
    return {
        "points": summary.count,
        "nonfinite": summary.nonfinite,
        "last": summary.last,
        "best": summary.best,
        "best_env_step": summary.best_env_step,
        "mean10": summary.mean10,
        "recent": summary.recent_text,
    }


async def summarise(
    database: Database, run_ids: Collection[str], evaluated: Collection[str] = ()
) -> int:
    """Brings the summaries of runs up to date.

    Args:
        database: Database of the curves.
        run_ids: The runs; those that do not exist are left out.
        evaluated: Those of them whose evaluations changed.

    Returns:
        The number of runs that were written.
    """
    total = 0
    every = list(dict.fromkeys(run_ids))
    for first in range(0, len(every), RUNS_PER_TRANSACTION):
        some = every[first : first + RUNS_PER_TRANSACTION]
        for _ in range(_ROUNDS):
            async with database.read() as session:
                found = await _compute(session, some, frozenset(evaluated))
            if not found:
                break
            async with database.write() as session:
                written = await rows.write(session, found)
            total += len(written)
            # What another process wrote meanwhile may lack records that this one has read.
            some = [one.run.id for one in found if one.run.id not in written]
    return total


async def _compute(
    session: Session, run_ids: Collection[str], evaluated: frozenset[str]
) -> list[NewSummary]:
    runs = await rows.load_runs(session, run_ids)
    works = await _begin(session, runs)
    await _add_new(session, [work for work in works if not work.is_anew])
    for work in works:
        if work.is_anew:
            await _add_all(session, work)
    await _add_evaluations(
        session, [work for work in works if work.is_anew or work.run.id in evaluated]
    )
    return [work.build() for work in works if work.is_anew or work.changed]


async def _begin(session: Session, runs: Sequence[SummarisedRun]) -> list[_Work]:
    ids = [run.id for run in runs]
    states = await rows.load_states(session, ids)
    thresholds = await rows.load_thresholds(session, {run.project_id for run in runs})
    minimised = await _find_minimised(session, runs)
    works = []
    for run in runs:
        state = states.get(run.id)
        work = _Work(
            run,
            state,
            is_anew=state is None or state.fence != run.fence,
            minimised=minimised.get((run.project_id, run.experiment_id)),
            thresholds=group_thresholds(thresholds[run.project_id]),
        )
        works.append(work)
    await _restore(session, [work for work in works if not work.is_anew])
    return works


def group_thresholds(found: Iterable[ThresholdRow]) -> dict[str, dict[int, Threshold]]:
    """Returns thresholds by series and ID."""
    of_series: dict[str, dict[int, Threshold]] = {}
    for one in found:
        threshold = Threshold(one.value, "at_least" if one.is_at_least else "at_most")
        of_series.setdefault(one.series, {})[one.id] = threshold
    return of_series


async def _restore(session: Session, works: Sequence[_Work]) -> None:
    """Reads the summaries to which new points are added."""
    ids = [work.run.id for work in works]
    known = await rows.load_series(session, ids)
    with_thresholds = [work.run.id for work in works if work.thresholds]
    crossed = await rows.load_crossings(session, with_thresholds)
    for work in works:
        assert work.state is not None
        work.places = dict(work.state.places)
        work.first_wall = work.state.first_wall
        work.stored_crossings = crossed[work.run.id]
        work.series = {
            name: SeriesSummary(
                work.find_goal(name),
                row.points,
                row.nonfinite,
                row.best,
                row.best_env_step,
                read_recent(row.recent),
                {
                    threshold_id: Crossing(kept.env_step, kept.wall)
                    for threshold_id in work.thresholds.get(name, ())
                    if (kept := work.stored_crossings.get(threshold_id)) is not None
                },
            )
            for name, row in known[work.run.id].items()
        }


async def _find_minimised(
    session: Session, runs: Iterable[SummarisedRun]
) -> dict[tuple[str, str], str]:
    keys = {(run.project_id, run.experiment_id) for run in runs if run.kind != _RL}
    if not keys:
        return {}
    found = await experiment_rows.load_definitions(session, keys)
    return {
        key: evaluation.metric
        for key, text in found.items()
        if isinstance(evaluation := load_definition(text).evaluation, SupervisedEvaluation)
        and evaluation.goal == "minimize"
    }


async def _add_new(session: Session, works: Sequence[_Work]) -> None:
    """Adds the points after the last summarised record of each attempt."""
    ids = [work.run.id for work in works]
    tails = await block_rows.load_tails(session, ids, places=_find_places(works))
    of_run: dict[str, list[Tail]] = {}
    for tail in tails:
        of_run.setdefault(tail.run_id, []).append(tail)
    for work in works:
        mine = of_run.get(work.run.id, [])
        if any(_is_old(work, tail) for tail in mine):
            work.is_anew = True
            work.series, work.places, work.first_wall = {}, {}, None
            work.stored_crossings = {}
            continue
        # While a batch that is summarised is not in a block, no later one is.
        if not any(tail.last_seq <= work.places.get(tail.attempt_id, -1) for tail in mine):
            await _add_blocks(session, work, {}, work.run.fence)
        await asyncio.to_thread(_add_tails, work, mine, {})


def _find_places(works: Iterable[_Work]) -> dict[str, int]:
    """Returns the last record of each attempt up to which all of its runs are summarised.

    Of batches before it nothing is new. If one of them is not in a block yet, the one that ends
    with it is not either, since the compactor takes the oldest batches first.
    """
    found: dict[str, int] = {}
    for work in works:
        for attempt_id, seq in work.places.items():
            found[attempt_id] = min(seq, found.get(attempt_id, seq))
    return found if len(found) <= _MAX_PLACES else {}


def _is_old(work: _Work, tail: Tail) -> bool:
    """Returns whether points of an earlier attempt arrived, which may count in part."""
    is_new = tail.last_seq > work.places.get(tail.attempt_id, -1)
    return is_new and tail.fence != work.run.fence


async def _add_all(session: Session, work: _Work) -> None:
    """Adds all points that count."""
    histories = await series.load_histories(session, [work.run.id])
    history = histories[work.run.id]
    await _add_blocks(session, work, history, None)
    tails = await block_rows.load_tails(session, [work.run.id])
    await asyncio.to_thread(_add_tails, work, tails, history)


async def _add_blocks(session: Session, work: _Work, history: Chain, fence: int | None) -> None:
    after = dict(work.places)
    stored = await rows.list_blocks(session, work.run.id, fence, after)
    for first in range(0, len(stored), _BLOCKS_AT_ONCE):
        some = stored[first : first + _BLOCKS_AT_ONCE]
        contents = await block_rows.load_contents(session, [one.id for one in some])
        decoded = await asyncio.to_thread(_decode, contents)
        for one in some:
            columns = decoded[one.id]
            last = int(columns.seq[-1])
            place = after.get(one.attempt_id, -1)
            if int(columns.seq[0]) <= place:
                columns = blocks.select(columns, columns.seq > place)
            if _counts(history, one.fence):
                work.add(one.name, stored_curves.select_history(columns, one.fence, history))
            work.places[one.attempt_id] = max(last, work.places.get(one.attempt_id, -1))


def _decode(contents: Mapping[int, bytes]) -> dict[int, Columns]:
    return {block_id: blocks.decode(content) for block_id, content in contents.items()}


def _add_tails(work: _Work, tails: Iterable[Tail], history: Chain) -> None:
    new = [tail for tail in tails if tail.last_seq > work.places.get(tail.attempt_id, -1)]
    new.sort(key=lambda tail: (tail.fence, tail.attempt_id, tail.first_seq))
    parts: dict[str, list[Columns]] = {}
    for tail in new:
        work.places[tail.attempt_id] = tail.last_seq
        if _counts(history, tail.fence):
            joined = point_tables.join_series(point_tables.decode(tail.content))
            for name, columns in joined.items():
                counted = stored_curves.select_history(columns, tail.fence, history)
                parts.setdefault(name, []).append(counted)
    for name, some in parts.items():
        work.add(name, blocks.concatenate(some))


def _counts(history: Chain, fence: int) -> bool:
    return not history or fence in history


async def _add_evaluations(session: Session, works: Sequence[_Work]) -> None:
    found: dict[str, list[Evaluation]] = {work.run.id: [] for work in works}
    for row in await block_rows.list_evaluations(session, found, superseded=False):
        found[row.run_id].append(Evaluation.model_validate_json(row.body))
    for work in works:
        work.add_evaluations(found[work.run.id])
