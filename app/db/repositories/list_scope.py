"""What the names in filters, keys and columns of a list mean for its caller."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ListScope:
    """What the names in a filter mean, and what the caller may read.

    Attributes:
        project_ids: Projects that the caller may read; no row of another one is returned.
        slugs: Slugs of these projects by ID.
        series: IDs of the names of series; a name without summaries has none.
        thresholds: IDs of the thresholds of a name, of which each project has at most one.
    """

    project_ids: Collection[str]
    slugs: Mapping[str, str]
    series: Mapping[str, int]
    thresholds: Mapping[str, tuple[int, ...]]
