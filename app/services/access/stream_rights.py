"""Ends live streams whose credential has ended, and follows the memberships of their users."""

from collections.abc import Mapping
from typing import Final

import structlog

from app.bus import Bus
from app.db.engine import ACCESS, Database
from app.domain.principal import Principal
from app.services import pools
from app.services.access.principals import load_present_principals
from app.services.events.filters import StreamFilter
from app.services.events.hub import EventHub
from app.services.events.subscriptions import EventSubscription
from app.settings import Settings

_log = structlog.get_logger("palestra.live")

PERIOD_SECONDS: Final = 3.0
"""Longest time between two checks, since a notification may be lost."""


async def watch(
    hub: EventHub,
    database: Database,
    bus: Bus,
    settings: Settings,
    period_seconds: float = PERIOD_SECONDS,
) -> None:
    """Checks all streams of the process whenever access changes, and every few seconds.

    Runs until cancelled. The check does not count as a use of the credential, so a stream that
    waits keeps no login alive.
    """
    changed = bus.subscribe(ACCESS)
    try:
        while True:
            await changed.wait(period_seconds)
            try:
                await check(hub, database, settings)
            # The database may be away; the next check comes.
            except Exception as error:  # noqa: BLE001
                _log.warning("live.check_failed", error=type(error).__name__)
    finally:
        bus.unsubscribe(changed)


async def check(hub: EventHub, database: Database, settings: Settings) -> None:
    """Closes the streams whose credential or right has ended, and limits the others.

    A stream receives the events of the projects that its caller may read now, and of the pools that
    admit one of them. It ends if it was opened for a project that the caller may not read any more.
    """
    streams = hub.streams
    if not streams:
        return
    async with database.read() as session:
        present = await load_present_principals(
            session,
            {stream.caller.credential_id: stream.caller for stream in streams}.values(),
            settings,
        )
        admitted = await pools.load_names_by_project(session)
    for stream in streams:
        caller = present.get(stream.caller.credential_id)
        filters = None if caller is None else _limit(stream, caller, admitted)
        if filters is None:
            stream.close()
        else:
            hub.limit(stream, filters)


def _limit(
    stream: EventSubscription, caller: Principal, admitted: Mapping[str, frozenset[str]]
) -> tuple[StreamFilter, ...] | None:
    limited = []
    for one in stream.filters:
        seen = pools.list_visible_to_stream(caller, admitted, only_project=one.only_project)
        filter_now = one.for_caller(caller, seen)
        if filter_now is None:
            return None
        limited.append(filter_now)
    return tuple(limited)
