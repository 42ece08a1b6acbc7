"""Actions on many runs at once: the runs are named, or all that fit a filter are meant."""

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from palestra.contract.documents import Document
from palestra.contract.filters import MAX_FILTER
from palestra.contract.views import View

MAX_RUNS_PER_REQUEST: Final = 100
"""Runs on which one request acts, unless it retries them."""
MAX_RETRIES_PER_REQUEST: Final = 50
"""Runs that one request retries: a new job takes five times as long as the change of one."""
MAX_NAMED_RUNS: Final = 1_000


RunId = Annotated[str, Field(max_length=64)]


class RunVerb(StrEnum):
    """What to do with each run."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    RETRY = "retry"
    """Trains a run again that failed or was cancelled."""


class RunSelection(Document):
    """Which runs are meant; members that are left out take all."""

    runs: Annotated[tuple[RunId, ...], Field(max_length=MAX_NAMED_RUNS)] | None = None
    """IDs."""
    filter: Annotated[str, Field(max_length=MAX_FILTER)] = ""
    """A filter of the list of runs (`palestra.contract.filters`)."""


class RunsAction(Document):
    """Body of a request to act on many runs."""

    action: RunVerb
    selection: RunSelection
    reason: Annotated[str, Field(max_length=500)] = ""
    origin: Literal["newest", "start"] = "newest"
    """Where `retry` starts: at the newest verified snapshot, or at the beginning."""
    dry_run: bool = False
    """Counts the runs and changes none."""
    after: Annotated[str, Field(max_length=64)] = ""
    """`next_after` of the request before, to go on with the next runs."""


class RunRefusal(View):
    """Why the action was refused for one run."""

    run_id: str
    code: str
    detail: str


class RunsActed(View):
    """What a request to act on many runs did."""

    matched: int
    """Selected runs on which the caller may act, in a state in which the action changes something:
    counted before it, those after `after` alone."""
    not_permitted: int
    """Selected runs of other persons, on which the caller may not act."""
    same_jobs: int
    """Runs that are not selected and train in the same packs: the action changes them, too."""
    done: tuple[str, ...]
    """IDs of the runs that were changed; empty with `dry_run`."""
    refused: tuple[RunRefusal, ...]
    next_after: str | None
    """Pass as `after` to act on the next runs; `null` if none is left."""
