from pathlib import Path

import pytest

from app.daemons.compactor import EVENT_SECONDS, Compactor
from app.daemons.summariser import Summariser
from app.db.engine import Database
from app.db.repositories import events, retention
from app.services.artifacts.blob_store import BlobStore
from app.services.events import event_log
from tests.support.server_fixture import World, advance_clock


async def test_old_events_and_answers_are_deleted_and_the_cursor_stays_valid(
    world: World, database: Database, tmp_path: Path
) -> None:
    await world.submit(seeds=[0, 1])
    compactor = Compactor(database, BlobStore(tmp_path / "blobs"), idempotency_seconds=60)
    assert await compactor.tick() == 0
    async with database.read() as session:
        before = await event_log.read_cursor(session)
    await Summariser(database).tick()
    advance_clock(EVENT_SECONDS + 1)
    assert await compactor.tick() > 0
    async with database.read() as session:
        assert await event_log.read_cursor(session) == before


async def test_all_expired_events_are_deleted_at_once_in_batches(
    world: World, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "_BATCH", 2)
    await world.submit(seeds=[0, 1, 2])
    await Summariser(database).tick()
    advance_clock(EVENT_SECONDS + 1)
    await Compactor(database, BlobStore(tmp_path / "blobs"), idempotency_seconds=60).tick()
    async with database.read() as session:
        oldest, newest = await events.read_bounds(session)
    assert oldest == newest > 4


async def test_events_that_no_summary_considered_are_kept(
    world: World, database: Database, tmp_path: Path
) -> None:
    await world.submit(seeds=[0])
    advance_clock(EVENT_SECONDS + 1)
    compactor = Compactor(database, BlobStore(tmp_path / "blobs"), idempotency_seconds=1e6)
    assert await compactor.tick() == 0
    await Summariser(database).tick()
    assert await compactor.tick() > 0
