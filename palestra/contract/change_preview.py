"""What a change of waiting jobs would do to the queue, as it crosses the API."""

from palestra.contract.job_batches import JobRefusal
from palestra.contract.queue import StartEstimate
from palestra.contract.views import View


class PlaceChanges(View):
    """Numbers of the jobs that would get another place among the first 1,000 of their pool."""

    earlier: int
    later: int


class PreviewedStart(View):
    """Place and start of a job, without and with the change."""

    job_id: str
    place: int | None
    """Place in its pool's queue now, from 1; `null` if it has none."""
    new_place: int | None
    """`null` if it would have none, or would no longer wait."""
    start: StartEstimate
    """Start as things are now."""
    new_start: StartEstimate


class ChangePreview(View):
    """The effect that a change of waiting jobs would have on the queue; nothing was written."""

    jobs: int
    """Jobs that would be changed."""
    jobs_left: int
    """Further selected jobs that the preview leaves out: it takes those of one request."""
    not_permitted: int
    """Selected jobs of other persons, on which the caller may not act."""
    refused: tuple[JobRefusal, ...]
    """Selected jobs that the change is refused for."""
    sentence: str
    """The effect in words."""
    starts: tuple[PreviewedStart, ...]
    """Of the changed jobs, the first to start with the change first: at most 20."""
    own_starts: tuple[PreviewedStart, ...]
    """Of the caller's other jobs that get another place, likewise."""
    own: PlaceChanges
    """The caller's other jobs."""
    others: PlaceChanges
    """Jobs of other persons."""
