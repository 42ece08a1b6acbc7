"""The limits on running jobs of a pool, with the jobs and device-hours that they count."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from app.db.engine import Session
from app.db.repositories import quotas as rows
from app.db.repositories.usage_reports import USED, UsageFilter, sum_usage
from app.domain.queue import quotas
from app.domain.queue.holds import RunningLimit, RunningLimits
from app.domain.queue.quotas import PoolQuotas, QuotaUse
from app.domain.queue.start_order import ExperimentKey, UsageAccount
from app.domain.usage_periods import UsagePeriod


class LimitsOfPool:
    """The limits of one pool, read once, and of the experiments that were requested.

    Args:
        of_quotas: Limits by quotas.
        started: Jobs by experiment that count as running though they are not stored so yet.
    """

    def __init__(
        self, of_quotas: RunningLimits, started: Mapping[ExperimentKey, int] | None = None
    ) -> None:
        self._started = started or {}
        self._known: set[ExperimentKey] = set()
        self._experiments: dict[ExperimentKey, RunningLimit] = {}
        self.limits = replace(of_quotas, experiments=self._experiments)
        """All limits; `add_experiments` adds to them."""

    async def add_experiments(
        self, session: Session, experiments: Collection[ExperimentKey]
    ) -> None:
        """Reads the limits of experiments that were not requested before."""
        unknown = set(experiments) - self._known
        if unknown:
            self._known |= unknown
            for key, limit in (await read_experiments(session, unknown)).items():
                running = limit.running + self._started.get(key, 0)
                self._experiments[key] = limit._replace(running=running)


async def read_pool(
    session: Session,
    pool: str,
    now: datetime,
    accounts: Collection[UsageAccount],
    started: Mapping[ExperimentKey, int] | None = None,
) -> LimitsOfPool:
    """Reads the limits of a pool's quotas.

    Args:
        session: A session.
        pool: Name of the pool.
        now: The database's time.
        accounts: Accounts whose limits are read.
        started: Jobs by experiment that count as running though they are not stored so yet.
    """
    found = await rows.load(session, pool)
    if not found.all:
        return LimitsOfPool(RunningLimits(), started)
    use = await read_use(session, pool, now, found)
    return LimitsOfPool(
        RunningLimits(
            accounts=quotas.limit_accounts(found, accounts, use),
            projects=quotas.limit_projects(found, use),
            exhausted_accounts=quotas.find_exhausted_accounts(found, accounts, use),
            exhausted_projects=quotas.find_exhausted_projects(found, use),
        ),
        started,
    )


async def read_use(
    session: Session, pool: str, now: datetime, found: PoolQuotas, *, all_of_it: bool = False
) -> QuotaUse:
    """Returns the amounts that quotas of a pool count, by default only limited amounts."""
    running: Mapping[UsageAccount, int] = {}
    if all_of_it or found.limits_running:
        running = await rows.count_running(session, pool)
    used: dict[UsageAccount, float] = {}
    if all_of_it or found.limits_device_hours:
        period = UsagePeriod(since=now - timedelta(seconds=quotas.PERIOD_SECONDS), until=now)
        wanted = UsageFilter(pools=[pool])
        for group in await sum_usage(session, ("project", "user"), wanted, period, now):
            if group.kind == USED:
                account = UsageAccount(str(group.key[0]), str(group.key[1]))
                used[account] = used.get(account, 0.0) + group.interval.whole
    return QuotaUse(running=running, device_seconds=used)


async def read_experiments(
    session: Session, keys: Collection[ExperimentKey]
) -> dict[ExperimentKey, RunningLimit]:
    """Returns the limits of the given experiments; experiments without a limit are left out."""
    most = await rows.load_experiment_limits(session, keys)
    if not most:
        return {}
    running = await rows.count_running_of_experiments(session, most)
    return {key: RunningLimit(running.get(key, 0), limit) for key, limit in most.items()}
