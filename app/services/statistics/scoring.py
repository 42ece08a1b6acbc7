"""Turns the evaluations of runs into scores, and refuses what cannot be compared."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import orjson

from app.domain.errors import InvalidError
from app.metrics.columns import Floats, Ints
from app.metrics.statistics.references import TABLES, Reference, find_extremes, normalise
from app.metrics.statistics.scores import (
    Scores,
    compute_area_score,
    compute_final_score,
)
from app.services.statistics.captions import list_some
from app.services.statistics.selection import SelectedGroup, SelectedRuns
from palestra.contract.problems import suggest_nearest
from palestra.contract.statistics import (
    MAX_SCORE,
    LeftOutRun,
    Normalisation,
    RunScore,
    ScoreRule,
    StatisticsQuery,
)


@dataclass(frozen=True, slots=True)
class EvaluationCurve:
    """The evaluations of a run in order of env_step; arrays of shape (evaluations,)."""

    env_step: Ints
    mean: Floats
    episodes: Ints


@dataclass(frozen=True, slots=True)
class ScoredGroup:
    """A group with the scores of its runs, which are ordered by environment, then seed."""

    group: SelectedGroup
    runs: Sequence[RunScore]

    @property
    def scores(self) -> Scores:
        """The score matrix, in the order of `runs`."""
        return Scores.from_runs([(run.environment, run.score) for run in self.runs])


@dataclass(frozen=True, slots=True)
class ScoredRuns:
    """All groups with their scores.

    Attributes:
        groups: The groups, in the order of the query.
        left_out: Runs without a score.
        curves: Evaluation curves by run.
        references: Reference by environment; empty without normalisation.
        data_hash: SHA-256 over the raw scores.
        empty: Names of groups that are left out, since none of their runs has a score.
        without_scale: Environments that are left out, since the normalisation has no scale for
            them, and the reason.
    """

    groups: Sequence[ScoredGroup]
    left_out: Sequence[LeftOutRun]
    curves: Mapping[str, EvaluationCurve]
    references: Mapping[str, Reference]
    data_hash: str
    empty: Sequence[str]
    without_scale: Mapping[str, str]


def score_runs(wanted: StatisticsQuery, selected: SelectedRuns) -> ScoredRuns:
    """Returns the scores of all runs.

    Raises:
        InvalidError: `missing_evaluations`, `empty_group`, `mixed_environments`, `unknown_table`,
            `missing_reference` or `equal_scores`.
    """
    curves = read_curves(selected)
    raw, reasons = compute_scores(wanted.score, selected, curves)
    if reasons and wanted.score.missing == "refuse":
        raise _missing(reasons)
    if not raw:
        raise _empty([group.name for group in selected.groups])
    _check_environments(wanted, selected, raw)
    references, without_scale = _find_references(wanted, selected, raw)
    for run_id in [key for key in raw if selected.environments[key] in without_scale]:
        del raw[run_id]
        reasons[run_id] = without_scale[selected.environments[run_id]]
    scored = [one for one in selected.groups if any(run.id in raw for run in one.runs)]
    empty = [one.name for one in selected.groups if one not in scored]
    groups = [
        ScoredGroup(group, _score_group(group, selected, raw, curves, references, wanted.score))
        for group in scored
    ]
    left_out = [LeftOutRun(run_id=key, reason=reason) for key, reason in reasons.items()]
    return ScoredRuns(groups, left_out, curves, references, _hash(groups), empty, without_scale)


def read_curves(selected: SelectedRuns) -> dict[str, EvaluationCurve]:
    """Returns the evaluation curve of each run that has evaluations."""
    points: dict[str, list[tuple[int, float, int]]] = {}
    for row in selected.evaluations:
        body = orjson.loads(row.body)
        point = (body["env_step"], float(body["mean"]), body["episodes"])
        points.setdefault(row.run_id, []).append(point)
    found: dict[str, EvaluationCurve] = {}
    for run_id, some in points.items():
        env_step, mean, episodes = zip(*sorted(some, key=lambda one: one[0]), strict=True)
        found[run_id] = EvaluationCurve(np.array(env_step), np.array(mean), np.array(episodes))
    return found


def compute_scores(
    rule: ScoreRule, selected: SelectedRuns, curves: Mapping[str, EvaluationCurve]
) -> tuple[dict[str, float], dict[str, str]]:
    """Returns the raw score of each run, and for each run without one the reason."""
    scores: dict[str, float] = {}
    reasons: dict[str, str] = {}
    needed = rule.last if rule.kind == "final" else 1
    for run_id in selected.environments:
        curve = curves.get(run_id)
        count = 0 if curve is None else len(curve.mean)
        if curve is None or count < needed:
            reasons[run_id] = f"{count} evaluations, {needed} needed"
            continue
        score = _compute_score(rule, curve)
        if abs(score) <= MAX_SCORE:
            scores[run_id] = score
        else:
            reasons[run_id] = "the return of an evaluation is not finite, or beyond 1e100"
    return scores, reasons


def _compute_score(rule: ScoreRule, curve: EvaluationCurve) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        if rule.kind == "final":
            return compute_final_score(curve.mean, curve.episodes, rule.last)
        if rule.kind == "area":
            return compute_area_score(curve.env_step, curve.mean)
        return float(curve.mean.max())


def _missing(reasons: Mapping[str, str]) -> InvalidError:
    run_id, reason = next(iter(reasons.items()))
    return InvalidError(
        "missing_evaluations",
        f"{len(reasons)} runs have no score; the first is {run_id}: {reason}. Wait for them, ask "
        "for fewer evaluations, or set `missing` to `leave_out`.",
        pointer="/score",
        run_ids=list(reasons)[:100],
    )


def _empty(groups: Sequence[str]) -> InvalidError:
    return InvalidError(
        "empty_group",
        f"The group {groups[0]} has no run with a score: wait for an evaluation, or leave the "
        "group out.",
        pointer="/score",
    )


def _check_environments(
    wanted: StatisticsQuery, selected: SelectedRuns, raw: Mapping[str, float]
) -> None:
    if wanted.normalisation is None and wanted.parts:
        environments = sorted({selected.environments[run_id] for run_id in raw})
        if len(environments) > 1:
            raise InvalidError(
                "mixed_environments",
                f"The runs are of {len(environments)} environments, for example {environments[0]} "
                f"and {environments[1]}, whose returns have different scales: give a "
                "`normalisation`, or runs of one environment.",
                pointer="/normalisation",
            )


def _find_references(
    wanted: StatisticsQuery, selected: SelectedRuns, raw: Mapping[str, float]
) -> tuple[dict[str, Reference], dict[str, str]]:
    """Returns the reference of each environment, and for each without one the reason.

    Raises:
        InvalidError: If an environment lacks one and may not be left out, or if all lack one.
    """
    normalisation = wanted.normalisation
    if normalisation is None:
        return {}, {}
    if normalisation.table is not None and normalisation.table not in TABLES:
        nearest = suggest_nearest(normalisation.table, sorted(TABLES))
        raise InvalidError(
            "unknown_table",
            f"is no table of reference scores{nearest}",
            pointer="/normalisation/table",
        )
    scores: dict[str, list[float]] = {}
    for run_id, score in raw.items():
        scores.setdefault(selected.environments[run_id], []).append(score)
    references = {
        env: reference
        for env, values in sorted(scores.items())
        if (reference := _find_reference(normalisation, env, values)) is not None
    }
    lacking = sorted(scores.keys() - references.keys())
    if lacking and (wanted.score.missing == "refuse" or not references):
        remedy = ", or set `missing` to `leave_out`" if references else ""
        raise _refuse_scale(normalisation, lacking, remedy)
    reason = (
        "all scores in {} are the same"
        if normalisation.kind == "min_max"
        else "there is no reference score of {}"
    )
    return references, {env: reason.format(env) for env in lacking}


def _find_reference(
    normalisation: Normalisation, environment: str, scores: Sequence[float]
) -> Reference | None:
    if normalisation.kind == "min_max":
        extremes = find_extremes(np.array(scores))
        return None if extremes.random == extremes.reference else extremes
    given = normalisation.references.get(environment)
    if given is not None:
        return Reference(given.random, given.reference)
    return None if normalisation.table is None else TABLES[normalisation.table].find(environment)


def _refuse_scale(
    normalisation: Normalisation, lacking: Sequence[str], remedy: str
) -> InvalidError:
    shown = list_some(lacking)
    if normalisation.kind == "min_max":
        return InvalidError(
            "equal_scores",
            f"All runs have the same score in {shown}, so there is no lowest and highest: give "
            f"references{remedy}.",
            pointer="/normalisation",
            environments=list(lacking[:100]),
        )
    return InvalidError(
        "missing_reference",
        f"There is no reference score of {shown}: give one in `references`, or use "
        f"`min_max`{remedy}.",
        pointer="/normalisation",
        environments=list(lacking[:100]),
    )


def _score_group(
    group: SelectedGroup,
    selected: SelectedRuns,
    raw: Mapping[str, float],
    curves: Mapping[str, EvaluationCurve],
    references: Mapping[str, Reference],
    rule: ScoreRule,
) -> list[RunScore]:
    found = []
    for run in group.runs:
        if run.id in raw:
            environment = selected.environments[run.id]
            score = raw[run.id]
            if references:
                score = _normalise(environment, score, references[environment])
            used = rule.last if rule.kind == "final" else len(curves[run.id].mean)
            found.append(
                RunScore(
                    run_id=run.id,
                    environment=environment,
                    seed=run.seed,
                    raw=raw[run.id],
                    score=score,
                    evaluations=used,
                )
            )
    return sorted(found, key=lambda one: one.environment)


def _normalise(environment: str, score: float, reference: Reference) -> float:
    with np.errstate(over="ignore"):
        found = float(normalise(np.array(score), reference))
    if not abs(found) <= MAX_SCORE:
        raise InvalidError(
            "equal_scores",
            f"The reference scores of {environment} are so close together that a normalised score "
            "is beyond 1e100: give others.",
            pointer="/normalisation",
        )
    return found


def _hash(groups: Sequence[ScoredGroup]) -> str:
    data = [
        (one.group.name, [(run.run_id, run.environment, run.raw) for run in one.runs])
        for one in groups
    ]
    return hashlib.sha256(repr(data).encode()).hexdigest()
