"""Computes the parts of an answer from scores. Pure: no input or output, no clock."""

import math
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np

from app.db.repositories.queried_runs import QueriedRun
from app.metrics.columns import Floats
from app.metrics.statistics import aggregates, comparisons, efficiency, profiles
from app.metrics.statistics.aggregates import Estimate
from app.metrics.statistics.scores import MIN_SEEDS, Scores
from app.services.statistics.compared_fields import list_differing_fields
from app.services.statistics.scoring import ScoredGroup, ScoredRuns
from app.services.statistics.selection import SelectedGroup, SelectedRuns
from palestra.contract.sizes import format_count
from palestra.contract.statistics import (
    Aggregate,
    EfficiencyView,
    EnvironmentStatistics,
    EstimateView,
    GroupStatistics,
    PairStatistics,
    ProfileView,
    RunScore,
    SeedAdviceView,
    StatisticsQuery,
)


def build_groups(
    wanted: StatisticsQuery,
    selected: SelectedRuns,
    scored: ScoredRuns,
    thresholds: Floats,
    grid: Floats,
) -> list[GroupStatistics]:
    """Returns the statistics of every group."""
    matrices = [group.scores for group in scored.groups]
    found = [
        _aggregate(wanted, group.group.name, matrices[i]) for i, group in enumerate(scored.groups)
    ]
    advice = _advise(wanted, scored.groups, matrices, found)
    return [
        GroupStatistics(
            name=group.group.name,
            by=dict(group.group.by),
            run_ids=[run.id for run in group.group.runs],
            scores=list(group.runs),
            environments=summarise_raw_scores(
                wanted, selected, group.group, {run.run_id: run.raw for run in group.runs}
            ),
            seeds=matrices[index].fewest_seeds,
            aggregates={name: _view(one) for name, one in found[index].items()},
            profile=_profile(wanted, group.group.name, matrices[index], thresholds),
            efficiency=_trace(wanted, group, scored, grid),
            advice=advice[index],
        )
        for index, group in enumerate(scored.groups)
    ]


def build_pairs(wanted: StatisticsQuery, groups: Sequence[ScoredGroup]) -> list[PairStatistics]:
    """Returns the comparison of each pair of groups that share an environment."""
    if not {"improvement", "paired"} & set(wanted.parts):
        return []
    found = []
    for first, second in combinations(groups, 2):
        shared = {run.environment for run in first.runs} & {run.environment for run in second.runs}
        if shared:
            found.append(_compare(wanted, first, second, shared))
    return found


def choose_grid(wanted: StatisticsQuery, scored: ScoredRuns) -> Floats:
    """Returns positions from the first evaluation of any run to the last of any."""
    curves = [scored.curves[run.run_id] for group in scored.groups for run in group.runs]
    if "efficiency" not in wanted.parts or not curves:
        return np.array([])
    low = min(int(curve.env_step[0]) for curve in curves)
    high = max(int(curve.env_step[-1]) for curve in curves)
    return np.unique(np.round(np.linspace(low, high, wanted.positions)))


def summarise_raw_scores(
    wanted: StatisticsQuery,
    selected: SelectedRuns,
    group: SelectedGroup,
    scores: Mapping[str, float],
) -> list[EnvironmentStatistics]:
    """Returns the statistics of a group's raw scores in each of its environments.

    Args:
        wanted: Has the number and the seed of the resamples.
        selected: Has the environments and the definitions of the runs.
        group: The group; runs without a score do not count.
        scores: Raw score of each run that has one.
    """
    of_environments: dict[str, list[QueriedRun]] = {}
    for run in group.runs:
        if run.id in scores:
            of_environments.setdefault(selected.environments[run.id], []).append(run)
    found = []
    for name, runs in sorted(of_environments.items()):
        raw = np.array([scores[run.id] for run in runs])
        estimates = aggregates.compute_aggregates(
            Scores.from_matrix(raw[:, None]),
            _generator(wanted, "environment", group.name, name),
            resamples=wanted.resamples,
            level=wanted.level,
        )
        experiments = dict.fromkeys((run.project_id, run.experiment_id) for run in runs)
        found.append(
            EnvironmentStatistics(
                environment=name,
                n=len(raw),
                experiments=len(experiments),
                differing_fields=list_differing_fields(
                    [selected.definitions[key] for key in experiments]
                ),
                mean=estimates["mean"].value,
                median=float(np.median(raw)),
                stdev=float(raw.std(ddof=1)) if len(raw) > 1 else None,
                iqm=_view(estimates["iqm"]),
            )
        )
    return found


def _generator(wanted: StatisticsQuery, *labels: str) -> np.random.Generator:
    """Returns a generator that depends on the seed and the labels: not on the other groups."""
    return np.random.default_rng([wanted.rng_seed, *(zlib.crc32(one.encode()) for one in labels)])


def _aggregate(wanted: StatisticsQuery, name: str, scores: Scores) -> dict[Aggregate, Estimate]:
    if "aggregates" not in wanted.parts:
        return {}
    gamma = wanted.gamma
    if gamma is None and wanted.normalisation is not None:
        gamma = 1.0
    return aggregates.compute_aggregates(
        scores,
        _generator(wanted, "aggregates", name),
        gamma=gamma,
        resamples=wanted.resamples,
        level=wanted.level,
    )


def _advise(
    wanted: StatisticsQuery,
    groups: Sequence[ScoredGroup],
    matrices: Sequence[Scores],
    found: Sequence[Mapping[Aggregate, Estimate]],
) -> list[SeedAdviceView | None]:
    if "aggregates" not in wanted.parts:
        return [None] * len(groups)
    names = [one.group.name for one in groups]
    given = comparisons.advise_on_seeds(
        [one[wanted.aggregate] for one in found], [one.fewest_seeds for one in matrices]
    )
    return [
        SeedAdviceView(
            rival=None if one.rival is None else names[one.rival],
            difference=one.difference,
            width=one.width,
            enough=one.enough,
            seeds=one.seeds,
            sentence=_describe(one, names, matrices[index].fewest_seeds),
        )
        for index, one in enumerate(given)
    ]


def _describe(advice: comparisons.SeedAdvice, names: Sequence[str], seeds: int) -> str:
    if advice.width is None:
        given = f"{format_count(seeds, 'seed')} {'gives' if seeds == 1 else 'give'} no interval"
        return f"{given}: {MIN_SEEDS} are needed in every environment."
    if advice.rival is None or advice.difference is None:
        return "There is no other group to compare with."
    rival = names[advice.rival]
    compared = (
        f"the interval is {advice.width:.4g} wide and the difference to {rival} is "
        f"{abs(advice.difference):.4g}"
    )
    if advice.enough:
        return f"{seeds} seeds are enough: {compared}."
    if advice.seeds is None:
        return f"{seeds} seeds are not enough: {compared}."
    # The estimate assumes that the difference is the true one, which so small a one hardly is.
    enough = f"About {advice.seeds}" if advice.seeds <= 1_000 else "More than 1,000"
    return f"{seeds} seeds are not enough: {compared}. {enough} would be."


def _profile(
    wanted: StatisticsQuery, name: str, scores: Scores, thresholds: Floats
) -> ProfileView | None:
    if "profile" not in wanted.parts:
        return None
    found = profiles.compute_profile(
        scores,
        thresholds,
        _generator(wanted, "profile", name),
        resamples=wanted.resamples,
        level=wanted.level,
    )
    return ProfileView(
        share=found.share.tolist(),
        low=None if found.low is None else found.low.tolist(),
        high=None if found.high is None else found.high.tolist(),
    )


def _trace(
    wanted: StatisticsQuery, group: ScoredGroup, scored: ScoredRuns, grid: Floats
) -> EfficiencyView | None:
    if "efficiency" not in wanted.parts:
        return None
    values = np.array([_place(run, scored, grid) for run in group.runs])
    found = efficiency.compute_efficiency(
        [run.environment for run in group.runs],
        values,
        _generator(wanted, "efficiency", group.group.name),
        resamples=wanted.curve_resamples,
        level=wanted.level,
    )
    return EfficiencyView(
        iqm=_hide_nan(found.iqm),
        low=_hide_nan(found.low),
        high=_hide_nan(found.high),
        n=found.n.tolist(),
    )


def _place(run: RunScore, scored: ScoredRuns, grid: Floats) -> Floats:
    """Returns a run's normalised curve on the grid; NaN where it is not finite, too."""
    curve = scored.curves[run.run_id]
    values = efficiency.carry_last_value(curve.env_step, curve.mean, grid)
    reference = scored.references.get(run.environment)
    if reference is not None:
        values = (values - reference.random) / (reference.reference - reference.random)
    return np.where(np.isfinite(values), values, np.nan)


def _hide_nan(values: Floats) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]


def _compare(
    wanted: StatisticsQuery, first: ScoredGroup, second: ScoredGroup, shared: set[str]
) -> PairStatistics:
    names = (first.group.name, second.group.name)
    left, right = (_restrict(one.runs, shared) for one in (first, second))
    improvement = paired = None
    if "improvement" in wanted.parts:
        rng = _generator(wanted, "improvement", *names)
        improvement = comparisons.compute_probability_of_improvement(
            _build(left.values()),
            _build(right.values()),
            rng,
            resamples=wanted.resamples,
            level=wanted.level,
        )
    both = [key for key in left if key in right]
    if "paired" in wanted.parts and both:
        paired = comparisons.compute_paired_difference(
            _build(left[key] for key in both),
            _build(right[key] for key in both),
            _generator(wanted, "paired", *names),
            aggregate=wanted.aggregate,
            resamples=wanted.resamples,
            level=wanted.level,
        )
    return PairStatistics(
        first=names[0],
        second=names[1],
        environments=sorted(shared),
        improvement=None if improvement is None else _view(improvement),
        paired=None if paired is None else _view(paired),
        pairs=len(both),
    )


def _restrict(
    runs: Sequence[RunScore], environments: set[str]
) -> dict[tuple[str, int, int], RunScore]:
    """Returns the runs of some environments by environment, seed and number among equal seeds."""
    found: dict[tuple[str, int, int], RunScore] = {}
    numbers: Counter[tuple[str, int]] = Counter()
    for run in runs:
        if run.environment in environments:
            same = (run.environment, run.seed)
            numbers[same] += 1
            found[(*same, numbers[same])] = run
    return found


def _build(runs: Iterable[RunScore]) -> Scores:
    return Scores.from_runs([(run.environment, run.score) for run in runs])


def _view(estimate: Estimate) -> EstimateView:
    return EstimateView(value=estimate.value, low=estimate.low, high=estimate.high)
