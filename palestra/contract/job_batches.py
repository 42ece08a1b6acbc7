"""Actions on many jobs at once: the jobs are named, or all that match a filter are meant."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from palestra.contract.documents import Document
from palestra.contract.job_changes import JobChange
from palestra.contract.names import PriorityClass, Schedule
from palestra.contract.states import JobState
from palestra.contract.views import View

MAX_JOBS_PER_REQUEST: Final = 100
"""Jobs on which one request acts."""


class JobVerb(StrEnum):
    """What to do with each job."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    CHANGE = "change"
    """Changes class, priority or limits of waiting jobs."""


class JobSelection(Document):
    """Which jobs are meant; members that are left out take all."""

    jobs: Annotated[tuple[str, ...], Field(max_length=1_000)] | None = None
    """IDs."""
    experiment: Annotated[str, Field(max_length=128)] | None = None
    run: Annotated[str, Field(max_length=128)] | None = None
    pool: Annotated[str, Field(max_length=64)] | None = None
    priority_class: PriorityClass | None = None
    states: tuple[JobState, ...] = ()
    """Empty takes all states in which the action changes something."""
    schedule: Schedule | None = None
    user: Annotated[str, Field(max_length=64)] | None = None
    """Login name of who submitted them; `me` is the caller."""


class JobsAction(Document):
    """Body of a request to act on many jobs."""

    action: JobVerb
    selection: JobSelection
    change: JobChange | None = None
    """What `change` changes of each job; not given with other actions."""
    reason: Annotated[str, Field(max_length=500)] = ""
    dry_run: bool = False
    """Counts the jobs and changes none."""
    after: Annotated[str, Field(max_length=64)] = ""
    """`next_after` of the request before, to go on with the next jobs."""


class JobRefusal(View):
    """Why the action was refused for one job."""

    job_id: str
    code: str
    detail: str


class JobsActed(View):
    """What a request to act on many jobs did."""

    matched: int
    """Selected jobs on which the caller may act, in a state in which the action changes something:
    counted before it, those after `after` alone."""
    not_permitted: int
    """Selected jobs of other persons, on which the caller may not act."""
    done: tuple[str, ...]
    """IDs of the jobs that were changed; empty with `dry_run`."""
    refused: tuple[JobRefusal, ...]
    next_after: str | None
    """Pass as `after` to act on the next jobs; `null` if none is left."""
