"""Long polls: the events of a stream for clients that cannot read streams."""

import contextlib
from collections.abc import Sequence

from app.domain.principal import Principal
from app.services.events.filters import StreamFilter
from app.services.events.hub import EventHub
from app.services.events.subscriptions import Part


async def poll(
    hub: EventHub,
    filters: Sequence[StreamFilter],
    caller: Principal,
    *,
    after: Sequence[int | None],
    seconds: float,
) -> bytes:
    """Returns the next events as the JSON of `PolledEvents`, waiting at most `seconds`.

    Raises:
        DomainError: If a limit of streams is reached.
    """
    parts: list[Part] = []
    resync: list[int] = []
    with hub.open(filters, caller, numbered=True) as stream:
        async with contextlib.aclosing(hub.events(stream, after, seconds)) as batches:
            async for deliveries in batches:
                for one in deliveries:
                    parts += one.parts
                    resync += one.resync
                break
        return _encode(parts, stream.cursors, resync)


def _encode(parts: Sequence[Part], cursors: Sequence[int], resync: Sequence[int]) -> bytes:
    events = b",".join(
        b'{"subscriptions":[%s],"event":%s}' % (_encode_numbers(numbers), event.json)
        for event, numbers in parts
    )
    return b'{"events":[%s],"cursors":[%s],"resync":[%s]}' % (
        events,
        _encode_numbers(cursors),
        _encode_numbers(resync),
    )


def _encode_numbers(numbers: Sequence[int]) -> bytes:
    return ",".join(map(str, numbers)).encode()
