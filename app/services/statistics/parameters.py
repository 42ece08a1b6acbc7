"""Ranks hyperparameters by how much the scores of each environment vary with them. Pure."""

from collections.abc import Mapping, Sequence

import numpy as np
from pydantic import JsonValue

from app.metrics.columns import Floats, Ints
from app.metrics.statistics.importance import (
    MIN_RUNS,
    compute_importance,
    split_values,
)
from palestra.contract.comparison import (
    ComparedRun,
    EnvironmentImportance,
    ParameterImportance,
)
from palestra.contract.documents import encode_canonical_json


def rank_parameters(
    runs: Sequence[ComparedRun],
    columns: Mapping[str, int],
    *,
    permutations: int,
    rng_seed: int,
) -> tuple[list[EnvironmentImportance], list[str]]:
    """Returns the importance of parameters per environment, and what it does not say.

    Args:
        runs: The runs; those without a score do not count.
        columns: Position of each parameter in `ComparedRun.values`.
        permutations: Number of permutations behind a p-value.
        rng_seed: Seed of the permutations.
    """
    found, notes = [], []
    if not columns:
        return [], ["No hyperparameter differs between these runs, so none has an importance."]
    for environment in dict.fromkeys(run.environment for run in runs):
        some = [run for run in runs if run.environment == environment and run.score is not None]
        if len(some) < MIN_RUNS:
            notes.append(
                f"Importance needs {MIN_RUNS} runs with a score: {environment} has {len(some)}."
            )
            continue
        rng = np.random.default_rng(rng_seed)
        scores = np.array([run.score for run in some], np.float64)
        permuted = rng.permuted(np.tile(scores, (permutations, 1)), axis=1)
        parameters = _rank(some, columns, scores, permuted)
        if parameters:
            found.append(
                EnvironmentImportance(
                    environment=environment, runs=len(some), parameters=parameters
                )
            )
        else:
            notes.append(f"No hyperparameter differs between the runs of {environment}.")
    return found, notes


def _rank(
    runs: Sequence[ComparedRun], columns: Mapping[str, int], scores: Floats, permuted: Floats
) -> list[ParameterImportance]:
    splits: dict[str, Ints] = {}
    numbers: dict[str, Floats | None] = {}
    levels: dict[str, int] = {}
    for path, column in columns.items():
        values = [run.values[column] for run in runs]
        keys = [encode_canonical_json(value) for value in values]
        levels[path] = len(set(keys))
        if levels[path] > 1:
            numbers[path] = _read_numbers(values)
            splits[path] = split_values(keys, numbers[path])
    found = []
    for path, labels in splits.items():
        one = compute_importance(numbers[path], labels, scores, permuted)
        found.append(
            ParameterImportance(
                path=path,
                levels=levels[path],
                correlation=one.correlation,
                explained=one.explained,
                p_value=one.p_value,
                same_split=[
                    other
                    for other, parts in splits.items()
                    if other != path and _is_same_split(labels, parts)
                ],
            )
        )
    return sorted(found, key=lambda one: (-_or_least(one.explained), -abs(one.correlation or 0)))


def _read_numbers(values: Sequence[JsonValue]) -> Floats | None:
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return np.array(values, np.float64)
    return None


def _is_same_split(first: Ints, second: Ints) -> bool:
    pairs = set(zip(first.tolist(), second.tolist(), strict=True))
    return len(pairs) == len(set(first.tolist())) == len(set(second.tolist()))


def _or_least(value: float | None) -> float:
    return -1.0 if value is None else value
