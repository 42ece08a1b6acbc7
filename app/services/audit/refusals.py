"""Refused requests in the audit log: one entry for each credential, route and minute."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import structlog

from app.db.engine import Database, Session
from app.db.repositories import audit as rows
from app.db.repositories import credentials
from app.db.repositories.credentials import Credential

_log = structlog.get_logger("palestra.audit")

MAX_KEYS: Final = 1_000
"""Entries of known callers that are kept at a time, and as many of others.

Further refusals are counted in one entry.
"""
MAX_ADDRESSES: Final = 100
"""Addresses of one entry that are told apart."""
_MINUTE: Final = 60
_OTHERS: Final = "others"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A request that was refused with 401 or 403."""

    route: str
    """Method and path template below `/api/v1`, for example `POST /jobs/{job_id}:cancel`."""
    code: str
    """Code of the problem details."""
    action: str = "request.refuse"
    object_id: str | None = None
    """The object if it is not the route."""
    address: str | None = None
    caller: Credential | None = None
    secret_hash: str | None = None
    """Hash of a credential that was not accepted; looked up before the entry is written."""
    user_id: str | None = None
    """The user whose login was tried."""


@dataclass(slots=True)
class _Count:
    refusal: Refusal
    minute: int
    first: float
    last: float
    count: int = 0
    addresses: set[str] = field(default_factory=set)


class Refusals:
    """Refusals since the last flush, counted in the memory of this process.

    Args:
        clock: Returns the seconds since the Unix epoch.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._counts: dict[tuple[object, ...], _Count] = {}
        self._kept = Counter[bool]()

    def note(self, refusal: Refusal) -> None:
        """Counts a refusal."""
        now = self._clock()
        minute = int(now) // _MINUTE
        key = (minute, *_key_of(refusal))
        is_known = refusal.caller is not None
        if key not in self._counts and self._kept[is_known] >= MAX_KEYS:
            refusal = Refusal(route=_OTHERS, code=_OTHERS)
            key = (minute, _OTHERS)
        if key not in self._counts:
            self._counts[key] = _Count(refusal, minute, now, now)
            self._kept[is_known] += 1
        found = self._counts[key]
        found.count += 1
        found.last = now
        if refusal.address is not None and len(found.addresses) < MAX_ADDRESSES:
            found.addresses.add(refusal.address)

    async def flush(self, database: Database, *, everything: bool = False) -> None:
        """Writes the entries of the minutes that are over, or of the present one too.

        A refusal whose credential does not exist is dropped, since it has no actor.
        """
        present = int(self._clock()) // _MINUTE
        due = [key for key, found in self._counts.items() if everything or found.minute != present]
        counts = [self._counts.pop(key) for key in due]
        self._kept = Counter(found.refusal.caller is not None for found in self._counts.values())
        if counts:
            async with database.write() as session:
                await _write(session, counts)

    async def run(self, database: Database) -> None:
        """Flushes after every minute, and everything once it is cancelled.

        The counts of a failed flush are lost.
        """
        try:
            while True:
                await asyncio.sleep(_MINUTE - self._clock() % _MINUTE)
                await self._try_to_flush(database, everything=False)
        finally:
            await self._try_to_flush(database, everything=True)

    async def _try_to_flush(self, database: Database, *, everything: bool) -> None:
        try:
            await self.flush(database, everything=everything)
        # The database may be away; the server goes on and so does the count of what comes next.
        except Exception as error:  # noqa: BLE001
            _log.warning("audit.refusals_lost", error=type(error).__name__)


def _key_of(refusal: Refusal) -> tuple[object, ...]:
    who = refusal.secret_hash if refusal.caller is None else refusal.caller.id
    if who is None:
        who = refusal.user_id or refusal.address
    return (who, refusal.route, refusal.code)


async def _write(session: Session, counts: list[_Count]) -> None:
    hashes = {found.refusal.secret_hash for found in counts if found.refusal.secret_hash}
    known = await credentials.load_by_hash(session, hashes)
    for found in counts:
        refusal = found.refusal
        caller = refusal.caller or known.get(refusal.secret_hash or "")
        if caller is not None or refusal.secret_hash is None:
            rows.append(session, _row(found, caller))


def _row(found: _Count, caller: Credential | None) -> dict[str, object]:
    refusal = found.refusal
    data: dict[str, object] = {"first": _text(found.first), "last": _text(found.last)}
    if len(found.addresses) > 1:
        data["addresses"] = len(found.addresses)
    if refusal.object_id is not None:
        data["route"] = refusal.route
    return {
        "project_id": None if caller is None else caller.project_id,
        "actor": "anonymous" if caller is None else caller.actor,
        "user_id": refusal.user_id if caller is None else caller.user_id,
        "credential": None if caller is None else caller.id,
        "address": refusal.address,
        "action": refusal.action,
        "object_type": refusal.action.partition(".")[0],
        "object_id": refusal.object_id or refusal.route,
        "outcome": "refused",
        "code": refusal.code,
        "count": found.count,
        "data": data,
    }


def _text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
