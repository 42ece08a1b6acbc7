from pathlib import Path

from app.daemons.compactor import EVENT_SECONDS, Compactor
from app.db.engine import Database
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
    advance_clock(EVENT_SECONDS + 1)
    assert await compactor.tick() > 0
    async with database.read() as session:
        assert await event_log.read_cursor(session) == before
