"""Which events a stream receives."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from app.db.models.events import EventRow
from app.domain.principal import Principal
from palestra.contract.permissions import Permission

OF_POOLS = frozenset({"pool", "worker"})
"""Types of events whose `data` names a pool, and whose receivers are those who see it."""


class EventKey(NamedTuple):
    """What filters read of an event."""

    id: int
    type: str
    project_id: str | None
    experiment_id: str | None
    run_id: str | None
    pool: str | None = None
    """Name of the pool that an event of a pool or of a worker is about; who sees it receives it."""

    @classmethod
    def of(cls, row: EventRow) -> "EventKey":
        """Returns the key of a row."""
        pool = row.data.get("pool") if row.type in OF_POOLS else None
        return cls(row.id, row.type, row.project_id, row.experiment_id, row.run_id, pool)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFilter:
    """The events that a stream receives; empty sets of the other members admit all."""

    project_ids: frozenset[str]
    """Projects whose events it receives."""
    pools: frozenset[str] | None = frozenset()
    """Pools whose events, and those of their workers, it receives; `None` for all pools."""
    runs: frozenset[str] = frozenset()
    experiments: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    only_project: str | None = None
    """ID of the project to which the client limited the stream; `None` for all that it may read."""

    def for_caller(self, caller: Principal, pools: frozenset[str] | None) -> "StreamFilter | None":
        """Returns the filter limited to what a caller may read now.

        Args:
            caller: The caller as it is now.
            pools: The pools that the caller sees; `None` for all.

        Returns:
            `None` if the caller may not read the only project any more.
        """
        readable = caller.projects_with(Permission.PROJECT_READ)
        if self.only_project is not None:
            readable &= {self.only_project}
            if not readable:
                return None
        return replace(self, project_ids=readable, pools=pools)

    def takes(self, event: EventKey) -> bool:
        """Returns whether `event` passes the filter."""
        return (
            self._may_see(event)
            and (not self.types or event.type in self.types)
            and (not self.runs or event.run_id in self.runs)
            and (not self.experiments or event.experiment_id in self.experiments)
        )

    def _may_see(self, event: EventKey) -> bool:
        if event.type in OF_POOLS:
            return self.pools is None or event.pool in self.pools
        return event.project_id in self.project_ids
