"""The order in which the queued jobs of a pool start.

Lexicographic, without weights: priority class; the project with the least usage per share; in it
the person with the least usage (the levels of Slurm's Fair Tree); then that person's own order.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from app.domain.queue import usage
from palestra.contract.names import PriorityClass

_CLASSES: Final = tuple(PriorityClass)


class UsageAccount(NamedTuple):
    """A person in a project, to whom the usage of a job is charged."""

    project_id: str
    user_id: str


class ExperimentKey(NamedTuple):
    """An experiment of a project."""

    project_id: str
    experiment_id: str


class Group(NamedTuple):
    """The queued jobs of a person in a project in one priority class."""

    priority_class: PriorityClass
    project_id: str
    user_id: str

    @property
    def account(self) -> UsageAccount:
        """The account to which the jobs are charged."""
        return UsageAccount(self.project_id, self.user_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedJob:
    """The properties of a queued job that decide when and where it starts."""

    id: str
    attempt: int
    """Number of its latest attempt."""
    group: Group
    priority: int
    """Order among the person's own jobs: the highest first."""
    seed_index: int
    """Place of its first run among the runs of its experiment.

    Of equal priority, the first seed of each experiment starts before the second seed of any.
    """
    queued_at: datetime
    gpus: int
    version: int
    """Version of its work order."""
    requirements: str
    """Key of what it needs beside GPUs: jobs with the same key run on the same workers."""
    experiment_id: str
    wall_seconds: int | None = None
    """Time limit of an attempt; `None` if it has none."""
    grace_seconds: int = 0
    """Time that an attempt gets to stop once its time limit is reached."""
    own_place: int = 0
    """Order among its person's jobs of the same priority, the lowest first: 0 unless one was moved
    by hand."""

    @property
    def devices(self) -> int:
        """Number of devices that are charged: GPUs, or one slot without a GPU."""
        return max(1, self.gpus)

    @property
    def experiment(self) -> ExperimentKey:
        """The experiment of the job, by project and ID."""
        return ExperimentKey(self.group.project_id, self.experiment_id)

    def ends_by(self, end: datetime, start: datetime) -> bool:
        """Returns whether an attempt that starts at `start` has ended by `end` for certain."""
        latest = self.latest_end(start)
        return latest is not None and latest <= end

    def latest_end(self, start: datetime) -> datetime | None:
        """Returns when an attempt that starts at `start` has ended; `None` without time limit."""
        if self.wall_seconds is None:
            return None
        return start + timedelta(seconds=self.wall_seconds + self.grace_seconds)

    @property
    def own_order(self) -> tuple[int, int, int, datetime, str]:
        """Sort key among the jobs of its group."""
        return -self.priority, self.own_place, self.seed_index, self.queued_at, self.id


class Heads(NamedTuple):
    """The first jobs of a group in their order."""

    jobs: Sequence[QueuedJob] = ()
    is_complete: bool = False
    """Whether the group has no further jobs."""
    waiting_since: datetime = usage.LANDMARK
    """Since when the group has had queued jobs: of equal usage, the group that waits longest is
    first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Shares of the projects of a pool, and usage of their accounts, at one time."""

    now: datetime
    shares: Mapping[str, float]
    """Positive share of each admitted project, by project ID."""
    usage: Mapping[UsageAccount, float]
    """Stored usage (`usage.weighted_seconds`) of each account, that of live attempts included."""


def sum_by_project(used: Mapping[UsageAccount, float]) -> dict[str, float]:
    """Returns the usage of each project, by project ID."""
    found: dict[str, float] = {}
    for account, seconds in used.items():
        found[account.project_id] = found.get(account.project_id, 0.0) + seconds
    return found


_Persons = list[tuple[float, datetime, str]]
"""A heap of the persons of a project: stored usage, since when they wait, and user ID."""


class StartOrder:
    """Yields queued jobs in the order in which they start.

    `charge` adds a quantum to the usage of the account of a job that starts, so that the next
    job may belong to another person.

    Args:
        shares: Shares and usage at the time of the decision.
        heads: The first jobs of each group that has queued jobs; a group that is missing here has
            none.
    """

    def __init__(self, shares: Shares, heads: Mapping[Group, Heads]) -> None:
        self._now = shares.now
        self._shares = shares.shares
        self._heads = dict(heads)
        self._usage = dict(shares.usage)
        self._used_by_project = sum_by_project(self._usage)
        self._next_index: dict[Group, int] = {}
        self._passed: set[str] = set()
        self._groups_by_class: dict[PriorityClass, list[Group]] = {}
        for group in heads:
            self._groups_by_class.setdefault(group.priority_class, []).append(group)
        self._classes = iter(_CLASSES)
        self._class = next(self._classes)
        self._projects: list[tuple[float, datetime, str, _Persons]] = []
        self._begin_class()
        self.unloaded: Group | None = None
        """The group whose next job is not loaded, if that ended the order."""

    def load(self, heads: Mapping[Group, Heads]) -> None:
        """Replaces the jobs of some groups, except for those that `next` has returned."""
        for group, found in heads.items():
            left = [job for job in found.jobs if job.id not in self._passed]
            self._heads[group] = found._replace(jobs=left)
            self._next_index[group] = 0
        self.unloaded = None

    def first_group(self) -> Group | None:
        """Returns the group whose job is next, loaded or not; `None` at the end of the queue."""
        while True:
            if self._projects:
                _, _, project_id, persons = self._projects[0]
                group = Group(self._class, project_id, persons[0][2])
                heads = self._heads[group]
                if not heads.is_complete or self._next_index.get(group, 0) < len(heads.jobs):
                    return group
                self.skip_group()
                continue
            following = next(self._classes, None)
            if following is None:
                return None
            self._class = following
            self._begin_class()

    def peek(self) -> QueuedJob | None:
        """Returns the next job without removing it from the order; `None` if it is not loaded."""
        group = self.first_group()
        if group is None:
            return None
        jobs, index = self._heads[group].jobs, self._next_index.get(group, 0)
        return jobs[index] if index < len(jobs) else None

    def next(self) -> QueuedJob | None:
        """Returns the next job; `None` at the end of the queue or of what is loaded."""
        job = self.peek()
        if job is None:
            self.unloaded = self.first_group()
        else:
            self._next_index[job.group] = self._next_index.get(job.group, 0) + 1
            self._passed.add(job.id)
        return job

    def forecast(self, number: int) -> dict[Group, int]:
        """Returns how many of the next jobs are of which group of the class that is in turn.

        Supposes that each group has as many jobs as it could start, of one device each.
        """
        projects = [(*project[:3], list(project[3])) for project in self._projects]
        usage_by_project = dict(self._used_by_project)
        added = usage.quantum(1, self._now)
        found: dict[Group, int] = {}
        for _ in range(number if projects else 0):
            _, waiting_since, project_id, persons = projects[0]
            used, since, user_id = persons[0]
            group = Group(self._class, project_id, user_id)
            found[group] = found.get(group, 0) + 1
            heapq.heapreplace(persons, (used + added, since, user_id))
            used = usage_by_project.get(project_id, 0.0) + added
            usage_by_project[project_id] = used
            entry = (used / self._shares[project_id], waiting_since, project_id, persons)
            heapq.heapreplace(projects, entry)
        return found

    def list_unloaded(self, number: int) -> list[Group]:
        """Returns the first groups of the class that is in turn of which no job is loaded."""
        found: list[Group] = []
        for _, _, project_id, persons in sorted(self._projects):
            for _, _, user_id in sorted(persons):
                group = Group(self._class, project_id, user_id)
                heads = self._heads[group]
                if not heads.jobs and not heads.is_complete:
                    found.append(group)
            if len(found) >= number:
                break
        return found[:number]

    def charge(self, job: QueuedJob) -> None:
        """Adds a quantum to the usage of the job that `next` returned last."""
        added = usage.quantum(job.devices, self._now)
        account = job.group.account
        self._usage[account] = self._usage.get(account, 0.0) + added
        self._used_by_project[account.project_id] = (
            self._used_by_project.get(account.project_id, 0.0) + added
        )
        _, waiting_since, project_id, persons = self._projects[0]
        heapq.heapreplace(persons, (self._usage[account], persons[0][1], account.user_id))
        used = self._usage_per_share(project_id)
        heapq.heapreplace(self._projects, (used, waiting_since, project_id, persons))

    def skip_group(self) -> None:
        """Skips the remaining jobs of the group that is first now."""
        persons = self._projects[0][3]
        heapq.heappop(persons)
        if not persons:
            heapq.heappop(self._projects)

    def _begin_class(self) -> None:
        found: dict[str, _Persons] = {}
        usage_of, heads = self._usage.get, self._heads
        for group in self._groups_by_class.get(self._class, ()):
            _, project_id, user_id = group
            if project_id in self._shares:
                # A pair is equal to the account, and is made faster.
                used = usage_of((project_id, user_id), 0.0)  # type: ignore[call-overload]
                person = (used, heads[group].waiting_since, user_id)
                found.setdefault(project_id, []).append(person)
        for persons in found.values():
            heapq.heapify(persons)
        self._projects = [
            (
                self._usage_per_share(project_id),
                min(waiting_since for _, waiting_since, _ in persons),
                project_id,
                persons,
            )
            for project_id, persons in found.items()
        ]
        heapq.heapify(self._projects)

    def _usage_per_share(self, project_id: str) -> float:
        return self._used_by_project.get(project_id, 0.0) / self._shares[project_id]
