"""Which deliveries a stream writes at once, and which it queues."""

import asyncio
import time
from collections.abc import Callable

from app.services.events.filters import EventKey
from app.services.events.frames import LiveEvent, encode_frame
from app.services.events.subscriptions import EventBatch, EventSubscription
from tests.support.server_fixture import make_token_caller
from tests.support.waiting import PATIENCE_SECONDS, until


def _make_batch(event_id: int) -> EventBatch:
    frame = encode_frame(event_id, "run", {"id": event_id})
    key = EventKey(event_id, "run", "prj_1", None, None)
    return EventBatch([(LiveEvent(key, frame, frame.index(b"data: ") + 6), (0,))])


def _make_stream(
    written: list[bytes], *, takes: bool = True, clock: Callable[[], float] = time.monotonic
) -> EventSubscription:
    def write(chunk: bytes) -> bool:
        if takes:
            written.append(chunk)
        return takes

    return EventSubscription((), make_token_caller("u"), write_now=write, floor=10, clock=clock)


async def test_only_a_stream_that_has_sent_all_is_written_to() -> None:
    written: list[bytes] = []
    stream = _make_stream(written)
    stream.offer(_make_batch(11))
    assert written == [], "the replay is not done"
    taken = await stream.take(PATIENCE_SECONDS)
    assert [one.id for batch in taken for one in batch.events] == [11]
    stream.offer(_make_batch(12))
    assert written == [], "what was taken may not be sent yet"
    assert len(await stream.take(PATIENCE_SECONDS)) == 1
    waiting = asyncio.create_task(stream.take(PATIENCE_SECONDS))
    await asyncio.sleep(0)
    stream.offer(_make_batch(13))
    stream.offer(_make_batch(14))
    assert written == [_make_batch(13).chunk, _make_batch(14).chunk]
    assert not waiting.done(), "the task of the stream need not wake"
    stream.close()
    stream.offer(_make_batch(15))
    assert len(written) == 2, "a closed stream brings nothing more"
    await waiting


async def test_events_that_the_replay_may_have_sent_are_compared_with_the_cursors() -> None:
    written: list[bytes] = []
    stream = _make_stream(written)
    waiting = asyncio.create_task(stream.take(PATIENCE_SECONDS))
    await asyncio.sleep(0)
    stream.offer(_make_batch(10))
    assert written == []
    (batch,) = await waiting
    assert batch.after([10]).parts == []


async def test_what_the_connection_does_not_take_is_queued_with_all_that_follows() -> None:
    stream = _make_stream([], takes=False)
    waiting = asyncio.create_task(stream.take(PATIENCE_SECONDS))
    await asyncio.sleep(0)
    stream.offer(_make_batch(11))
    stream.write_now = lambda _: True
    stream.offer(_make_batch(12))
    taken = await waiting
    assert [one.id for batch in taken for one in batch.events] == [11, 12]


async def test_silence_counts_from_the_last_write() -> None:
    clock = ManualClock()
    stream = _make_stream([], clock=clock.read)
    waiting = asyncio.create_task(stream.take(0.03))
    await asyncio.sleep(0)
    for number in range(5):
        clock.seconds += 0.02
        stream.offer(_make_batch(11 + number))
        reads = clock.reads
        await until(lambda n=reads: clock.reads > n, "the stream looks at the clock")
        assert not waiting.done()
    clock.seconds += 0.03
    assert await waiting == []


class ManualClock:
    """A clock that counts how often it is read."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.reads = 0

    def read(self) -> float:
        self.reads += 1
        return self.seconds
