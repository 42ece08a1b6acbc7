"""Compares runs that are summarised already with the thresholds of their project.

A threshold that is declared later needs the points of its series alone, of many runs at once. Of a
run whose best value does not reach it not even these are read.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from app.db.engine import Database, Session
from app.db.repositories import blocks as block_rows
from app.db.repositories import compared_series
from app.db.repositories import summaries as rows
from app.db.repositories.blocks import Tail
from app.db.repositories.compared_series import ComparedBlock
from app.db.repositories.stale_summaries import read_compared_fence
from app.db.repositories.summaries import (
    KeptCrossing,
    NewSummary,
    SummarisedRun,
    SummaryState,
)
from app.metrics import blocks, point_tables
from app.metrics.columns import Columns
from app.metrics.fence_chain import Chain
from app.metrics.sort_records import parse_evaluation_series
from app.metrics.summaries import SeriesSummary, Threshold
from app.services.curves import series, stored_curves, summaries
from palestra.contract.telemetry import Evaluation

RUNS_PER_TRANSACTION: Final = 100
"""Runs of one transaction."""


@dataclass(slots=True)
class _Work:
    """A run while it is compared."""

    run: SummarisedRun
    state: SummaryState
    thresholds: Mapping[str, Mapping[int, Threshold]]
    """Thresholds by series and ID."""
    stored: Mapping[int, KeptCrossing]
    history: Chain = field(default_factory=dict)
    series: dict[str, SeriesSummary] = field(default_factory=dict)

    def add(self, name: str, env_steps: Any, walls: Any, values: Any) -> None:
        summary = self.series.setdefault(name, SeriesSummary())
        summary.add(env_steps, walls, values, self.thresholds[name])

    def add_points(self, name: str, columns: Columns, fence: int, attempt_id: str) -> None:
        """Adds those points of an attempt that count and are summarised."""
        if self.history and fence not in self.history:
            return
        columns = blocks.select(columns, columns.seq <= self.state.places.get(attempt_id, -1))
        columns = stored_curves.select_history(columns, fence, self.history)
        if len(columns):
            self.add(name, columns.env_step, columns.wall, columns.value)

    def add_evaluations(self, found: Sequence[Evaluation]) -> None:
        for name in self.thresholds:
            made = parse_evaluation_series(name)
            if made is None:
                continue
            of_source = [one for one in found if one.source is made[0]]
            if not of_source or made[1] not in series.list_statistics(of_source):
                continue
            having = [
                (one.env_step, one.wall, value)
                for one in of_source
                if (value := series.read_statistic(one, made[1])) is not None
            ]
            if having:
                steps, walls, values = zip(*having, strict=True)
                self.add(name, np.array(steps, np.int64), np.array(walls), np.array(values))

    def build(self) -> NewSummary:
        first = self.state.first_wall or 0.0
        crossings = {
            threshold_id: KeptCrossing(one.env_step, one.wall, one.wall - first)
            for summary in self.series.values()
            for threshold_id, one in summary.crossings.items()
        }
        return NewSummary(
            self.run,
            self.state,
            self.state.places,
            self.state.first_wall,
            replaces=False,
            series={},
            crossings=dict(crossings.items() - self.stored.items()),
        )


async def compare(database: Database, run_ids: Collection[str]) -> int:
    """Finds the first crossings of runs; returns the number of runs that were written.

    Those that another process writes meanwhile still wait afterwards.

    Args:
        database: Database of the curves.
        run_ids: Runs that are not compared with all thresholds of their project.
    """
    total = 0
    every = list(run_ids)
    for first in range(0, len(every), RUNS_PER_TRANSACTION):
        some = every[first : first + RUNS_PER_TRANSACTION]
        async with database.read() as session:
            works = await _compute(session, some)
        async with database.write() as session:
            total += len(await rows.write(session, [work.build() for work in works]))
        # An attempt raised the fence since: other points count now.
        changed = set(some) - {work.run.id for work in works}
        total += await summaries.summarise(database, changed)
    return total


async def _compute(session: Session, run_ids: Sequence[str]) -> list[_Work]:
    works = {work.run.id: work for work in await _begin(session, run_ids)}
    names = {name for work in works.values() for name in work.thresholds}
    stored = {name for name in names if parse_evaluation_series(name) is None}
    if names - stored:
        found: dict[str, list[Evaluation]] = {run_id: [] for run_id in works}
        for row in await block_rows.list_evaluations(session, works, superseded=False):
            found[row.run_id].append(Evaluation.model_validate_json(row.body))
        for run_id, evaluations in found.items():
            works[run_id].add_evaluations(evaluations)
    if stored:
        await _add_stored(session, works, stored)
    return list(works.values())


async def _begin(session: Session, run_ids: Sequence[str]) -> list[_Work]:
    runs = await rows.load_runs(session, run_ids)
    ids = [run.id for run in runs]
    states = await rows.load_states(session, ids)
    crossings = await rows.load_crossings(session, ids)
    declared = await rows.load_thresholds(session, {run.project_id for run in runs})
    return [
        _Work(run, state, summaries.group_thresholds(declared[run.project_id]), crossings[run.id])
        for run in runs
        if (state := states.get(run.id)) is not None
        and read_compared_fence(state.fence) == run.fence
    ]


async def _add_stored(session: Session, works: Mapping[str, _Work], names: Collection[str]) -> None:
    best = await compared_series.load_best(session, works, names)
    needed = {
        run_id
        for (run_id, name), value in best.items()
        if any(_may_reach(one, value) for one in works[run_id].thresholds.get(name, {}).values())
    }
    for run_id, history in (await series.load_histories(session, needed)).items():
        works[run_id].history = history
    found = await compared_series.load_blocks(session, needed, names)
    tails = await block_rows.load_tails(session, needed)
    await asyncio.to_thread(_add_points, works, found, tails)


def _may_reach(threshold: Threshold, best: float | None) -> bool:
    """Returns whether a series whose highest value is `best` may have a value that reaches it."""
    return best is not None and (threshold.direction == "at_most" or best >= threshold.value)


def _add_points(
    works: Mapping[str, _Work], found: Sequence[ComparedBlock], tails: Sequence[Tail]
) -> None:
    for one in found:
        work = works[one.run_id]
        if one.name in work.thresholds:
            work.add_points(one.name, blocks.decode(one.content), one.fence, one.attempt_id)
    for tail in tails:
        work = works[tail.run_id]
        for name, columns in point_tables.join_series(point_tables.decode(tail.content)).items():
            if name in work.thresholds:
                work.add_points(name, columns, tail.fence, tail.attempt_id)
