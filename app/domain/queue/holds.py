"""Why a job that is reached in the order does not start, and the limits on running jobs."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from app.domain.queue.start_order import ExperimentKey, Group, QueuedJob, UsageAccount
from palestra.contract.names import PriorityClass


class HoldReason(StrEnum):
    """The kind of reason why a job that was reached in the order does not start."""

    NO_FITTING_WORKER = "no_fitting_worker"
    """No worker that is online has its GPUs and executes its version."""
    NOT_FREE_LONG_ENOUGH = "not_free_long_enough"
    """A maintenance window or a reservation begins on each worker that could take it before its
    time limit, or it has none."""
    SLOTS_BUSY = "slots_busy"
    """No worker that could take it has a free slot."""
    INTERACTIVE_LIMIT = "interactive_limit"
    """Its person has another interactive job."""
    EXPERIMENT_LIMIT = "experiment_limit"
    """As many jobs of its experiment run as may."""
    PERSON_LIMIT = "person_limit"
    """As many jobs of its person run in its project as may."""
    PROJECT_LIMIT = "project_limit"
    """As many jobs of its project run as may."""
    DEVICE_HOURS = "device_hours"
    """Its person or its project has used its device-hours of the rolling period."""
    RESERVED = "reserved"
    """The free slots that it could use are reserved for a job that needs several."""


class Hold(NamedTuple):
    """The reason why a job does not start, with its numbers."""

    reason: HoldReason
    job_id: str | None = None
    """The job for which slots are reserved: another one, or the job itself."""
    worker_id: str | None = None
    """The worker whose slots are reserved."""
    start: datetime | None = None
    """When the job with the reservation can start there at the latest; `None` if not known."""


class RunningLimit(NamedTuple):
    """A limit on running jobs, assigned ones included, and the number of these jobs."""

    running: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningLimits:
    """Limits on running jobs; projects and persons that are missing here have no limit."""

    experiments: Mapping[ExperimentKey, RunningLimit] = field(default_factory=dict)
    accounts: Mapping[UsageAccount, RunningLimit] = field(default_factory=dict)
    """By person in a project."""
    projects: Mapping[str, RunningLimit] = field(default_factory=dict)
    exhausted_accounts: frozenset[UsageAccount] = frozenset()
    """Persons in projects who have used the device-hours of the rolling period."""
    exhausted_projects: frozenset[str] = frozenset()
    """Projects that have used the device-hours of the rolling period."""


class RunningJobs:
    """Counts the running jobs, and decides which queued jobs the limits hold back.

    Args:
        limits: Limits, with the jobs that run before the decision.
        interactive: IDs of the users with an interactive job that is assigned or live.
    """

    def __init__(self, limits: RunningLimits, interactive: AbstractSet[str]) -> None:
        self._limits = limits
        self._experiments = dict(limits.experiments)
        self._interactive = set(interactive)
        self._added: dict[ExperimentKey | UsageAccount | str, int] = {}

    def add_limits(self, experiments: Mapping[ExperimentKey, RunningLimit]) -> None:
        """Adds limits of further experiments, with the jobs that ran before the decision."""
        self._experiments |= experiments

    def find_group_hold(self, group: Group) -> Hold | None:
        """Returns why all jobs of a group are held back; `None` if they are not."""
        limits, account = self._limits, group.account
        if group.priority_class is PriorityClass.INTERACTIVE and group.user_id in self._interactive:
            return Hold(HoldReason.INTERACTIVE_LIMIT)
        if account in limits.exhausted_accounts or account.project_id in limits.exhausted_projects:
            return Hold(HoldReason.DEVICE_HOURS)
        if self._is_full(account.project_id, limits.projects.get(account.project_id)):
            return Hold(HoldReason.PROJECT_LIMIT)
        if self._is_full(account, limits.accounts.get(account)):
            return Hold(HoldReason.PERSON_LIMIT)
        return None

    def find_hold(self, group: Group, experiment: ExperimentKey) -> Hold | None:
        """Returns why an experiment's jobs in a group are held back; `None` if they are not."""
        hold = self.find_group_hold(group)
        if hold is None and self._is_full(experiment, self._experiments.get(experiment)):
            return Hold(HoldReason.EXPERIMENT_LIMIT)
        return hold

    def share_limit(self, one: QueuedJob, other: QueuedJob) -> bool:
        """Returns whether a limit counts both of two jobs."""
        limits, group = self._limits, one.group
        return (
            (one.experiment == other.experiment and one.experiment in self._experiments)
            or (group.account == other.group.account and group.account in limits.accounts)
            or (group.project_id == other.group.project_id and group.project_id in limits.projects)
            or (
                group.user_id == other.group.user_id
                and group.priority_class is other.group.priority_class is PriorityClass.INTERACTIVE
            )
        )

    def add(self, job: QueuedJob) -> None:
        """Counts a job that is assigned."""
        for key in (job.experiment, job.group.account, job.group.project_id):
            self._added[key] = self._added.get(key, 0) + 1
        if job.group.priority_class is PriorityClass.INTERACTIVE:
            self._interactive.add(job.group.user_id)

    def _is_full(self, key: ExperimentKey | UsageAccount | str, limit: RunningLimit | None) -> bool:
        return limit is not None and limit.running + self._added.get(key, 0) >= limit.most
