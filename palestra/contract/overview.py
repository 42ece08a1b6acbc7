"""What a person's own runs and jobs do now, as it crosses the API."""

from datetime import datetime

from palestra.contract.resources import JobView, RunView
from palestra.contract.views import View


class ProjectJobsView(View):
    """The unfinished jobs of all persons in a project of the caller."""

    project: str
    """Slug."""
    running: int
    """Jobs that hold a slot."""
    waiting: int
    paused: int


class OverviewView(View):
    """The caller's own runs and jobs, and the numbers of jobs in the caller's projects."""

    running: list[RunView]
    """Own runs that train now, the newest first: at most 20."""
    running_total: int
    failed: list[RunView]
    """Own runs that failed since `failed_since` and were not retried, the latest failure first: at
    most 20. Runs of archived experiments are left out."""
    failed_total: int
    failed_since: datetime
    """Seven days ago."""
    waiting: int
    """Own jobs that wait in the queue."""
    paused: int
    """Own jobs that are paused."""
    next_job: JobView | None
    """The own waiting job that is expected to start first; `null` if none waits."""
    projects: list[ProjectJobsView]
    """One for each project of the caller, by slug."""
