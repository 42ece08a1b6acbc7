"""Quotas of projects and persons in a pool. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from app.domain.queue.holds import RunningLimit
from app.domain.queue.start_order import UsageAccount

PERIOD_SECONDS: Final = 7 * 86_400.0
"""Length of the period, which ends now, of the device-hours that a quota counts."""

_HOUR: Final = 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """Limits; `None` for no limit."""

    queued: int | None = None
    running: int | None = None
    """Jobs that are assigned or live."""
    device_hours: float | None = None
    """Device-hours within the period."""


NO_QUOTA: Final = Quota()

DEFAULT_QUEUED: Final = 10_000
"""Jobs of a person that wait in a pool, unless a quota of the person or of each person says another
number."""

DEFAULT_PERSON_QUOTA: Final = Quota(queued=DEFAULT_QUEUED)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolQuotas:
    """The quotas of a pool."""

    projects: Mapping[str, Quota] = field(default_factory=dict)
    """Of each project with all its persons, by project ID."""
    each_person: Mapping[str, Quota] = field(default_factory=dict)
    """Of each person in a project, by project ID."""
    persons: Mapping[UsageAccount, Quota] = field(default_factory=dict)
    """Of persons who have limits of their own, which replace those of each person."""

    def of_person(self, account: UsageAccount) -> Quota:
        """Returns the limits of a person in a project, with the default on queued jobs."""
        quota = self.persons.get(account) or self.each_person.get(account.project_id, NO_QUOTA)
        if quota == NO_QUOTA:
            return DEFAULT_PERSON_QUOTA
        return replace(quota, queued=DEFAULT_QUEUED) if quota.queued is None else quota

    def of_project(self, project_id: str) -> Quota:
        """Returns the limits of a project."""
        return self.projects.get(project_id, NO_QUOTA)

    @property
    def all(self) -> list[Quota]:
        """The quotas of projects, of each person and of single persons, in one tuple."""
        return [*self.projects.values(), *self.each_person.values(), *self.persons.values()]

    @property
    def limits_running(self) -> bool:
        """Whether any of the quotas counts running jobs."""
        return any(quota.running is not None for quota in self.all)

    @property
    def limits_device_hours(self) -> bool:
        """Whether any of the quotas counts device-hours."""
        return any(quota.device_hours is not None for quota in self.all)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUse:
    """The amounts that quotas count, by account."""

    running: Mapping[UsageAccount, int] = field(default_factory=dict)
    device_seconds: Mapping[UsageAccount, float] = field(default_factory=dict)
    """Within the period."""


def limit_accounts(
    quotas: PoolQuotas, accounts: Collection[UsageAccount], use: QuotaUse
) -> dict[UsageAccount, RunningLimit]:
    """Returns the limits on running jobs of the persons of the given accounts."""
    return {
        account: RunningLimit(use.running.get(account, 0), most)
        for account in accounts
        if (most := quotas.of_person(account).running) is not None
    }


def limit_projects(quotas: PoolQuotas, use: QuotaUse) -> dict[str, RunningLimit]:
    """Returns the limits on running jobs of the projects."""
    running = _sum_projects(use.running)
    return {
        project_id: RunningLimit(int(running.get(project_id, 0)), quota.running)
        for project_id, quota in quotas.projects.items()
        if quota.running is not None
    }


def find_exhausted_accounts(
    quotas: PoolQuotas, accounts: Collection[UsageAccount], use: QuotaUse
) -> frozenset[UsageAccount]:
    """Returns the persons who have used up their device-hours."""
    return frozenset(
        account
        for account in accounts
        if _is_used_up(quotas.of_person(account), use.device_seconds.get(account, 0.0))
    )


def find_exhausted_projects(quotas: PoolQuotas, use: QuotaUse) -> frozenset[str]:
    """Returns the projects that have used up their device-hours."""
    used = _sum_projects(use.device_seconds)
    return frozenset(
        project_id
        for project_id, quota in quotas.projects.items()
        if _is_used_up(quota, used.get(project_id, 0.0))
    )


def _is_used_up(quota: Quota, seconds: float) -> bool:
    return quota.device_hours is not None and seconds >= quota.device_hours * _HOUR


def _sum_projects(values: Mapping[UsageAccount, float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for account, value in values.items():
        found[account.project_id] = found.get(account.project_id, 0) + value
    return found
