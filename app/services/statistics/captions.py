"""Sentences on statistics for captions of figures."""

from collections.abc import Sequence
from typing import Final

from app.metrics.statistics.scores import MIN_SEEDS
from palestra.contract.statistics import ScoreRule

__all__ = ["MIN_SEEDS", "describe_score", "list_some", "note_few_seeds"]

_MAX_NAMES: Final = 5


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


def list_some(names: Sequence[str]) -> str:
    """Returns the first names, and how many more there are."""
    more = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def note_few_seeds(groups: Sequence[str]) -> str:
    """Returns the sentence about groups that have too few scores for an interval."""
    return (
        f"No interval is given where there are fewer than {MIN_SEEDS} scores: {list_some(groups)}."
    )
