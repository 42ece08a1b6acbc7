"""Sentences on statistics for captions of figures."""

from collections.abc import Sequence

from app.metrics.statistics.scores import MIN_SEEDS
from palestra.contract.statistics import ScoreRule

__all__ = ["MIN_SEEDS", "describe_score", "note_few_seeds"]


def describe_score(rule: ScoreRule) -> str:
    """Returns in words how the score of a run is computed."""
    source = rule.source.value.replace("_", " ")
    if rule.kind == "area":
        return f"mean height of the {source} curve over env_steps"
    if rule.kind == "max":
        return f"best {source}, a maximum over noisy results"
    if rule.last == 1:
        return f"mean over the episodes of the last {source}"
    return f"mean over the episodes of the last {rule.last} of {source}"


def note_few_seeds(groups: Sequence[str]) -> str:
    """Returns the sentence about groups that have too few scores for an interval."""
    return (
        f"No interval is given where there are fewer than {MIN_SEEDS} scores: {', '.join(groups)}."
    )
