"""Stored estimates of when waiting jobs start, as answers."""

from collections.abc import Sequence
from typing import Final

from app.db.engine import Session
from app.db.models.jobs import JobRow
from app.db.models.start_estimates import StartEstimateRow
from app.db.repositories import start_estimates as rows
from app.domain.queue.start_estimates import measure_accuracy
from palestra.contract.queue import EstimateAccuracy, StartEstimate

_MAX_COMPARED: Final = 1_000
"""Starts that are compared with their estimates."""

_NOT_YET: Final = (
    "Its start has not been estimated yet: that is done every few seconds, for the first 1,000 "
    "jobs of each pool."
)


async def load_estimates(session: Session, queued: Sequence[JobRow]) -> dict[str, StartEstimate]:
    """Returns the latest stored estimate of each of some queued jobs, by ID."""
    found = await rows.load(session, [job.id for job in queued])
    return {job.id: _build_view(found.get(job.id)) for job in queued}


def _build_view(row: StartEstimateRow | None) -> StartEstimate:
    if row is None:
        return build_unknown(_NOT_YET)
    return StartEstimate(
        made_at=row.made_at,
        earliest=row.earliest,
        median=row.median,
        latest=row.latest,
        unknown=row.unknown,
    )


def build_unknown(reason: str) -> StartEstimate:
    """Returns the answer that there is no estimate, with the reason in a sentence."""
    return StartEstimate(made_at=None, earliest=None, median=None, latest=None, unknown=reason)


async def load_accuracy(session: Session, pool: str) -> EstimateAccuracy:
    """Returns how well the latest starts of a pool were estimated."""
    found = measure_accuracy(await rows.list_compared(session, pool, _MAX_COMPARED))
    return EstimateAccuracy(
        starts=found.starts,
        median_error_seconds=found.median_error_seconds,
        coverage=found.coverage,
    )
