"""History and live stream of a run.

A client that merges them has exactly the records that were sent, without gap or overlap.
"""

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from app.bus import MemoryBus
from app.db.engine import Database
from app.domain.errors import TooManyRequestsError, UnavailableError
from app.services.curves import curves, logs
from app.services.events import event_log, subscriptions
from app.services.events.filters import StreamFilter
from app.services.events.frames import LiveEvent
from app.services.events.hub import EventHub
from app.services.events.subscriptions import EventBatch
from app.services.telemetry import batches
from palestra.contract.queries import SeriesQuery
from tests.support import records
from tests.support.records import make_delivery
from tests.support.server_fixture import World, make_token_caller
from tests.support.waiting import PATIENCE_SECONDS, until


@contextlib.asynccontextmanager
async def run_hub(database: Database, **options: Any) -> AsyncIterator[EventHub]:
    bus = MemoryBus()
    database.listeners.append(lambda topics: [bus.publish(topic) for topic in topics] and None)
    hub = EventHub(database, bus, **{"most": 10, "most_per_user": 10, **options})
    task = asyncio.create_task(hub.run())
    try:
        yield hub
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.fixture
async def hub(database: Database) -> AsyncIterator[EventHub]:
    async with run_hub(database) as started:
        yield started


async def _start(world: World) -> tuple[str, str]:
    """Starts a training; returns the run and its attempt."""
    registered = await world.register()
    job = await world.submit_one_job()
    order = (await world.start(job.id, registered.worker_id)).work_order
    return order.runs[0].run_id, order.attempt_id


async def _send(database: Database, attempt_id: str, seq: int, *content: dict[str, Any]) -> None:
    async with database.write() as session:
        await batches.take(session, make_delivery(attempt_id, seq, content))


def _query(run_id: str, buckets: int) -> SeriesQuery:
    body = {
        "select": [{"run_id": run_id, "series": "loss"}],
        "start": 1,
        "end": buckets,
        "buckets": buckets,
    }
    return SeriesQuery.model_validate_json(json.dumps(body))


def _list_events(deliveries: list[EventBatch]) -> list[LiveEvent]:
    return [event for one in deliveries for event in one.events]


def _has_reached(hub: EventHub, event_id: int) -> bool:
    return hub.offered_to >= event_id


def _parse_data(frames: list[bytes]) -> list[dict[str, Any]]:
    parsed = [
        dict(line.split(": ", 1) for line in frame.decode().strip().split("\n")) for frame in frames
    ]
    return [json.loads(event["data"]) for event in parsed]


@pytest.mark.both_databases(
    "Writers commit concurrently on PostgreSQL, and streams follow the order of their events.",
    of=("app.db.repositories.pending_rows",),
)
@pytest.mark.parametrize("seed", range(4))
async def test_history_and_tail_join_without_gap_or_overlap(
    world: World, database: Database, hub: EventHub, seed: int
) -> None:
    chooser = random.Random(seed)
    run_id, attempt_id = await _start(world)
    total, sent = 60, 0

    async def train() -> None:
        nonlocal sent
        for sent in range(1, total + 1):
            await _send(database, attempt_id, sent, records.make_points(run_id, "loss", [sent]))
            for _ in range(chooser.randrange(4)):
                await asyncio.sleep(0)

    async def watch(first: int, second: int) -> list[int]:
        await until(lambda: sent >= first, f"point {first}")
        loaded = await curves.query(database, world.admin, _query(run_id, total))
        merged = [i + 1 for i, n in enumerate(loaded.series[0].n) for _ in range(n)]
        # The history of a late watcher may hold all points: then the stream brings none.
        if len(merged) >= total:
            return merged
        await until(lambda: sent >= second, f"point {second}")
        wish = StreamFilter(project_ids=frozenset({world.project_id}), types=frozenset({"points"}))
        with hub.open([wish], world.admin) as stream:
            async for deliveries in hub.events(stream, [loaded.cursor], PATIENCE_SECONDS):
                # Empty where all events of a read lie below the cursor.
                for data in _parse_data([event.frame for event in _list_events(deliveries)]):
                    merged += data["data"]["series"][0]["env_step"]
                if len(merged) >= total:
                    return merged
        return merged

    starts = [sorted(chooser.choices(range(total), k=2)) for _ in range(6)]
    async with asyncio.timeout(PATIENCE_SECONDS):
        watchers = [asyncio.create_task(watch(first, second)) for first, second in starts]
        await asyncio.gather(train(), *watchers)
    for watcher in watchers:
        assert watcher.result() == list(range(1, total + 1))


async def test_streams_see_only_their_project_and_their_filter(
    world: World, database: Database, hub: EventHub
) -> None:
    run_id, attempt_id = await _start(world)
    own = StreamFilter(
        project_ids=frozenset({world.project_id}),
        runs=frozenset({run_id}),
        types=frozenset({"log"}),
    )
    foreign = StreamFilter(project_ids=frozenset({"prj_other"}))
    with (
        hub.open([own], make_token_caller("u")) as mine,
        hub.open([foreign], make_token_caller("v")) as other,
    ):
        events = hub.events(mine, [None], PATIENCE_SECONDS, announced=True)
        foreign_events = hub.events(other, [0], 0)
        assert await anext(events) == []
        assert await anext(foreign_events) == []
        await _send(
            database,
            attempt_id,
            1,
            records.make_points(run_id, "loss", [1]),
            records.make_log(run_id, "a\nid: 1\ndata: x", "b"),
        )
        (event,) = _list_events(await anext(events))
        assert await anext(foreign_events) == []
    assert event.frame.count(b"\n") == 4, "no content begins a line of its own"
    (view,) = _parse_data([event.frame])
    assert (view["type"], view["run_id"]) == ("log", run_id)
    assert [line["text"] for line in view["data"]["lines"]] == ["a\nid: 1\ndata: x", "b"]
    async with database.read() as session:
        read = await logs.read(session, world.admin, run_id, after=0, limit=10)
    assert view["data"] == json.loads(read.model_dump_json())


async def test_special_numbers_are_sent_as_strings(
    world: World, database: Database, hub: EventHub
) -> None:
    run_id, attempt_id = await _start(world)
    await _send(
        database,
        attempt_id,
        1,
        records.make_points(run_id, "loss", [1, 2, 3], ["NaN", 2.5, "-Infinity"]),
    )
    wish = StreamFilter(project_ids=frozenset({world.project_id}), types=frozenset({"points"}))
    with hub.open([wish], make_token_caller("u")) as stream:
        (event,) = _list_events(await anext(hub.events(stream, [0], PATIENCE_SECONDS)))
    (view,) = _parse_data([event.frame])
    (series,) = view["data"]["series"]
    assert (series["name"], series["value"]) == ("loss", ["NaN", 2.5, "-Infinity"])
    assert (view["data"]["fence"], view["data"]["seq"]) == (1, 1)


@pytest.mark.parametrize("cursor", [10**12, 2**53 - 1])
async def test_an_unknown_cursor_makes_the_client_reload(
    world: World, hub: EventHub, cursor: int
) -> None:
    await world.submit_one_job()
    wish = StreamFilter(project_ids=frozenset({world.project_id}))
    with hub.open([wish], make_token_caller("u")) as stream:
        (delivery,) = await anext(hub.events(stream, [cursor], PATIENCE_SECONDS))
    assert (delivery.resync, delivery.events) == ((0,), [])


async def test_a_slow_client_is_asked_to_reload(
    world: World, database: Database, hub: EventHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "MAX_QUEUED_EVENTS", 3)
    run_id, attempt_id = await _start(world)
    wish = StreamFilter(project_ids=frozenset({world.project_id}))
    with hub.open([wish], make_token_caller("u")) as stream:
        events = hub.events(stream, [None], PATIENCE_SECONDS, announced=True)
        assert await anext(events) == []
        await _send(database, attempt_id, 1, records.make_points(run_id, "loss", [1]))
        await anext(events)
        for seq in range(2, 8):
            await _send(database, attempt_id, seq, records.make_points(run_id, "loss", [seq]))
        await until(lambda: stream.has_overflowed)
        (delivery,) = await anext(events)
        assert (delivery.resync, delivery.events) == ((0,), [])
        with pytest.raises(StopAsyncIteration):
            await anext(events)


async def test_a_slow_client_gets_the_newest_event_of_a_resource_and_all_points(
    world: World, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "COALESCE_AT", 2)
    run_id, attempt_id = await _start(world)
    job = (await world.list_jobs())[0]
    wish = StreamFilter(project_ids=frozenset({world.project_id}))
    async with run_hub(database, tick_seconds=0) as hub, contextlib.AsyncExitStack() as opened:
        stream = opened.enter_context(hub.open([wish], make_token_caller("u")))
        events = hub.events(stream, [None], PATIENCE_SECONDS, announced=True)
        assert await anext(events) == []
        await _send(database, attempt_id, 1, records.make_points(run_id, "loss", [1]))
        await anext(events)
        await world.pause(job.id)
        await world.cancel(job.id)
        for seq in range(2, 12):
            await _send(database, attempt_id, seq, records.make_points(run_id, "loss", [seq]))
            async with database.read() as session:
                newest = await event_log.read_cursor(session)
            await until(partial(_has_reached, hub, newest))
        received = _list_events(await anext(events))
    views = _parse_data([event.frame for event in received])
    jobs = [view["data"]["state"] for view in views if view["type"] == "job"]
    steps = [
        step
        for view in views
        if view["type"] == "points"
        for step in view["data"]["series"][0]["env_step"]
    ]
    assert len(jobs) == 1, "an older state of the job was replaced"
    assert steps == list(range(2, 12))
    assert [event.id for event in received] == sorted(event.id for event in received)


async def test_streams_are_limited_per_user_and_in_total(database: Database) -> None:
    async with run_hub(database, most=3, most_per_user=2) as hub:
        wish = [StreamFilter(project_ids=frozenset({"prj_1"}))]
        with hub.open(wish, make_token_caller("a")), hub.open(wish, make_token_caller("a")):
            with pytest.raises(TooManyRequestsError):
                hub.open(wish, make_token_caller("a")).__enter__()
            with hub.open(wish, make_token_caller("b")), pytest.raises(UnavailableError):
                hub.open(wish, make_token_caller("c")).__enter__()
        with hub.open(wish, make_token_caller("a")):
            pass


async def test_closing_the_hub_ends_its_streams(world: World, database: Database) -> None:
    async with run_hub(database) as hub:
        wish = StreamFilter(project_ids=frozenset({world.project_id}))
        with hub.open([wish], make_token_caller("a")) as stream:
            events = hub.events(stream, [None], 10 * PATIENCE_SECONDS, announced=True)
            assert await anext(events) == []
            task = asyncio.create_task(_collect(events))
            await asyncio.sleep(0)
            hub.close()
            await asyncio.wait_for(task, PATIENCE_SECONDS)


async def _collect(events: AsyncIterator[list[EventBatch]]) -> None:
    async for _ in events:
        pass
