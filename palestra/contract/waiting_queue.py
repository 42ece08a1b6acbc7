"""The waiting jobs of a pool in the order in which they will start, as they cross the API."""

from palestra.contract.names import PriorityClass
from palestra.contract.resources import JobView
from palestra.contract.views import View


class LaneView(View):
    """The waiting jobs of one class in a pool, of the projects that the caller may read."""

    priority_class: PriorityClass
    waiting: int
    mine: int
    """Those among them that the caller submitted."""


class WaitingQueueView(View):
    """A page of the waiting jobs of a pool.

    First the jobs that were assigned to a worker, then those that have a place, then the others by
    class and age.
    """

    items: list[JobView]
    next_cursor: str | None
    """Pass as `cursor` for the next page; `null` on the last."""
    lanes: list[LaneView]
    """One for each class, in the order of the classes; they count all jobs, whatever the filters of
    the request."""
