"""Thresholds of a project: values of a series of which each run's first crossing is kept."""

from enum import StrEnum

from palestra.contract.documents import Document
from palestra.contract.names import SeriesName
from palestra.contract.views import View


class ThresholdDirection(StrEnum):
    """Which values reach a threshold."""

    AT_LEAST = "at_least"
    """Those that equal or exceed it, for example returns."""
    AT_MOST = "at_most"
    """Those that equal it or are below it, for example losses."""


class ThresholdRequest(Document):
    """What a threshold is about; another value replaces the crossings that were kept."""

    series: SeriesName
    """For example `evaluation/mean`."""
    value: float
    direction: ThresholdDirection = ThresholdDirection.AT_LEAST


class ThresholdView(View):
    """A threshold; lists filter and sort by it as `reached.NAME` and `reached.NAME.seconds`."""

    name: str
    series: str
    value: float
    direction: ThresholdDirection
    runs: int
    """Runs of the project that have reached it."""
    pending_runs: int
    """Runs of the project whose curves have not been compared with it yet."""
