"""Answers a query for statistics over runs, from one state of the database."""

import asyncio
from collections.abc import Sequence
from typing import Final

import numpy as np

from app.db.engine import Database
from app.db.repositories import events as event_rows
from app.domain.errors import TooLargeError
from app.domain.principal import Principal
from app.metrics.statistics import bootstrap, profiles
from app.metrics.statistics.references import TABLES
from app.metrics.statistics.scores import MIN_SEEDS
from app.services.statistics import captions, parts
from app.services.statistics.scoring import ScoredRuns, score_runs
from app.services.statistics.selection import SelectedRuns, select_runs
from palestra.contract.statistics import (
    GroupStatistics,
    StatisticsMethod,
    StatisticsQuery,
    StatisticsResult,
)

MAX_DRAWS: Final = 60_000_000
"""Largest number of scores that one query may resample, over all of its parts."""
FEW_SEEDS: Final = 10
"""Seeds below which the answer says that there are few, as captions of papers do."""


async def aggregate(
    database: Database, principal: Principal, wanted: StatisticsQuery
) -> StatisticsResult:
    """Returns the statistics of groups of runs.

    Raises:
        NotFoundError: If the caller's projects lack one of the runs or experiments.
        InvalidError: If a group is empty, a run has no score, or scores cannot be compared.
        TooLargeError: If the query exceeds a limit.
    """
    async with database.read() as session:
        selected = await select_runs(session, principal, wanted)
        _check_size(wanted, selected)
        cursor = await event_rows.read_newest_id(session)
    return await asyncio.to_thread(_answer, wanted, selected, cursor)


def _check_size(wanted: StatisticsQuery, selected: SelectedRuns) -> None:
    runs = sum(len(group.runs) for group in selected.groups)
    each = len({"aggregates", "profile"} & set(wanted.parts)) + 1
    pairs = len({"improvement", "paired"} & set(wanted.parts)) * max(len(selected.groups) - 1, 0)
    draws = runs * wanted.resamples * (each + pairs)
    if "efficiency" in wanted.parts:
        draws += runs * wanted.curve_resamples * wanted.positions
    if draws > MAX_DRAWS:
        raise TooLargeError(
            "query_too_large",
            f"The query would draw {draws} scores, at most {MAX_DRAWS} may be. Ask for fewer "
            "resamples, positions, groups or parts.",
        )


def _answer(wanted: StatisticsQuery, selected: SelectedRuns, cursor: int) -> StatisticsResult:
    scored = score_runs(wanted, selected)
    thresholds = np.array([])
    if "profile" in wanted.parts:
        values = np.concatenate([group.scores.values for group in scored.groups])
        thresholds = profiles.choose_thresholds(values, wanted.thresholds)
    grid = parts.choose_grid(wanted, scored)
    groups = parts.build_groups(wanted, selected, scored, thresholds, grid)
    return StatisticsResult(
        groups=groups,
        pairs=parts.build_pairs(wanted, scored.groups),
        environments=sorted(set(selected.environments.values())),
        thresholds=thresholds.tolist(),
        grid=grid.tolist(),
        left_out=list(scored.left_out),
        notes=_write_notes(groups, scored),
        method=_describe_method(wanted, scored),
        cursor=cursor,
    )


def _write_notes(groups: Sequence[GroupStatistics], scored: ScoredRuns) -> list[str]:
    notes = []
    without_interval = [one.name for one in groups if one.seeds < MIN_SEEDS]
    if without_interval:
        notes.append(captions.note_few_seeds(without_interval))
    few = [one.name for one in groups if MIN_SEEDS <= one.seeds < FEW_SEEDS]
    if few:
        notes.append(f"Intervals are over fewer than {FEW_SEEDS} seeds: {captions.list_some(few)}.")
    sizes = [{one.n for one in group.environments} for group in groups]
    uneven = [group.name for group, some in zip(groups, sizes, strict=True) if len(some) > 1]
    if uneven:
        notes.append(
            "Environments have different numbers of seeds, and those with more weigh more in "
            f"pooled statistics: {captions.list_some(uneven)}."
        )
    covered = {frozenset(one.environment for one in group.environments) for group in groups}
    if len(covered) > 1:
        notes.append(
            "Groups have different environments, so their aggregates are not over the same; pairs "
            "are compared over the environments that both have."
        )
    notes += [sentence for group in groups if (sentence := _note_pooling(group)) is not None]
    notes += [f"{env} is left out: {reason}." for env, reason in scored.without_scale.items()]
    if scored.empty:
        notes.append(f"Groups without a score are left out: {captions.list_some(scored.empty)}.")
    if scored.left_out:
        notes.append(f"Runs left out without a score: {len(scored.left_out):,}.")
    return notes


def _note_pooling(group: GroupStatistics) -> str | None:
    """Returns the sentence about a group that has several experiments in an environment."""
    cells = [
        f"{cell.experiments} in {cell.environment} "
        f"({captions.list_some(cell.differing_fields) or 'equal definitions'})"
        for cell in group.environments
        if cell.experiments > 1
    ]
    return f"{group.name} pools experiments: {captions.list_some(cells)}." if cells else None


def _describe_method(wanted: StatisticsQuery, scored: ScoredRuns) -> StatisticsMethod:
    return StatisticsMethod(
        score=captions.describe_score(wanted.score),
        normalisation=_describe_normalisation(wanted),
        resamples=wanted.resamples,
        curve_resamples=wanted.curve_resamples,
        level=wanted.level,
        rng_seed=wanted.rng_seed,
        generator=bootstrap.GENERATOR,
        data_hash=scored.data_hash,
    )


def _describe_normalisation(wanted: StatisticsQuery) -> str | None:
    if wanted.normalisation is None:
        return None
    if wanted.normalisation.kind == "min_max":
        return "lowest and highest score of each environment in this query"
    given = f"{len(wanted.normalisation.references)} references of the query"
    if wanted.normalisation.table is None:
        return given
    table = TABLES[wanted.normalisation.table]
    words = f"{table.name}: {table.source}"
    return f"{words}; {given}" if wanted.normalisation.references else words
