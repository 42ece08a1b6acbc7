"""Verification of the audit log: each way to falsify it is found at the right entry."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import delete, insert, select, text, update

from app.db.clock import SKEW
from app.db.engine import Database
from app.db.models import AuditChainRow, AuditRow
from app.db.repositories import audit as rows
from app.db.repositories import audit_entries
from app.domain.audit_chain import GENESIS, ChainPlace
from app.services.audit import retention, verification
from app.services.audit.verification import verify
from tests.app.services.test_audit_chain import read_entries, record
from tests.support.waiting import PATIENCE_SECONDS

both_databases = pytest.mark.both_databases(
    "Entries are appended and removed by concurrent transactions on PostgreSQL.",
    of=(
        "app.db.engine",
        "app.db.models.audit",
    ),
)

DAY = 86_400.0


async def append_entries(database: Database, count: int) -> None:
    """Appends entries `o1` to `oN`, each in a transaction of its own."""
    for i in range(1, count + 1):
        async with database.write() as session:
            record(session, f"o{i}", text=f"entry {i}")


async def execute(database: Database, *statements: Any) -> None:
    async with database.write() as session:
        for statement in statements:
            await session.execute(statement.execution_options(synchronize_session=False))


async def find_fault(database: Database, noted: ChainPlace | None = None) -> tuple[str, int] | None:
    """Verifies the log; returns kind and entry of the reported fault."""
    found = (await verify(database, noted)).fault
    return None if found is None else (found.kind, found.entry)


def is_entry(entry: int) -> Any:
    return AuditRow.id == entry


def add_fitting_hash(row: AuditRow, **changes: Any) -> dict[str, Any]:
    """Returns the columns of a changed entry with the hash that fits them."""
    columns = {column.name: getattr(row, column.name) for column in AuditRow.__table__.columns}
    changed = AuditRow(**{**columns, **changes})
    return {**columns, **changes, "hash": rows.compute_hash(changed)}


async def test_an_intact_log_is_reported_with_its_end(database: Database) -> None:
    empty = await verify(database)
    assert (empty.entries, empty.last_id, empty.last_hash, empty.fault) == (0, 0, GENESIS, None)
    await append_entries(database, 7)
    found = await verify(database)
    last = (await read_entries(database))[-1]
    assert (found.entries, found.removed, found.fault) == (7, 0, None)
    assert (found.last_id, found.last_hash) == (7, last.hash)
    assert await find_fault(database, ChainPlace(7, last.hash)) is None


@pytest.mark.parametrize(
    "values",
    [
        {"actor": "user:usr_b"},
        {"user_id": "usr_b"},
        {"user_id": None},
        {"credential": "tok_x"},
        {"address": "10.0.0.1"},
        {"project_id": None},
        {"action": "thing.other"},
        {"object_id": "o5"},
        {"outcome": "refused"},
        {"code": "x"},
        {"count": 2},
        {"data": {"text": "entry 3 "}},
        {"data": {}},
        {"at": "microsecond"},
        {"hash": "0" * 64},
        {"previous_hash": "0" * 64},
    ],
    ids=str,
)
async def test_a_change_of_any_column_is_found(database: Database, values: dict[str, Any]) -> None:
    await append_entries(database, 6)
    if values == {"at": "microsecond"}:
        step = text("1") if "sqlite" in str(database.engine.url) else text("interval '1 us'")
        values = {"at": AuditRow.at.op("+")(step)}
    await execute(database, update(AuditRow).where(is_entry(3)).values(**values))
    assert await find_fault(database) == ("changed", 3)


async def test_a_change_with_a_fitting_hash_is_found_at_the_next_entry(database: Database) -> None:
    await append_entries(database, 6)
    third = (await read_entries(database))[2]
    await execute(
        database,
        update(AuditRow).where(is_entry(3)).values(add_fitting_hash(third, object_id="other")),
    )
    assert await find_fault(database) == ("replaced", 4)


async def test_a_changed_last_entry_with_a_fitting_hash_is_found(database: Database) -> None:
    await append_entries(database, 6)
    last = (await read_entries(database))[-1]
    await execute(
        database,
        update(AuditRow).where(is_entry(6)).values(add_fitting_hash(last, object_id="other")),
    )
    assert await find_fault(database) == ("replaced", 6)


@pytest.mark.parametrize(
    ("gone", "found"),
    [
        ([1], ("missing", 1)),
        ([3], ("missing", 3)),
        ([3, 4], ("missing", 3)),
        ([6], ("missing", 6)),
        ([5, 6], ("missing", 5)),
        ([1, 2, 3, 4, 5, 6], ("missing", 1)),
    ],
)
async def test_deleted_entries_are_found(
    database: Database, gone: list[int], found: tuple[str, int]
) -> None:
    await append_entries(database, 6)
    await execute(database, delete(AuditRow).where(AuditRow.id.in_(gone)))
    assert await find_fault(database) == found
    await append_entries(database, 1)
    assert await find_fault(database) == found, "what is appended later does not hide it"


async def test_entries_that_moved_up_over_a_deleted_one_are_found(database: Database) -> None:
    await append_entries(database, 6)
    await execute(
        database,
        delete(AuditRow).where(is_entry(3)),
        *(update(AuditRow).where(is_entry(old)).values(id=old - 1) for old in (4, 5, 6)),
    )
    assert await find_fault(database) == ("changed", 3)


async def test_reordered_entries_are_found(database: Database) -> None:
    await append_entries(database, 6)
    await execute(
        database,
        *(
            update(AuditRow).where(is_entry(old)).values(id=new)
            for old, new in ((3, 99), (4, 3), (99, 4))
        ),
    )
    assert await find_fault(database) == ("changed", 3)


async def test_inserted_entries_are_found(database: Database) -> None:
    await append_entries(database, 6)
    last = (await read_entries(database))[-1]
    added = add_fitting_hash(last, id=7, previous_hash=last.hash, object_id="by hand")
    await execute(database, insert(AuditRow).values(added))
    assert await find_fault(database) == ("added", 7)
    await execute(
        database, update(AuditRow).where(is_entry(7)).values(add_fitting_hash(last, id=0))
    )
    assert await find_fault(database) == ("added", 0)


async def test_a_lost_end_is_reported(database: Database) -> None:
    await append_entries(database, 3)
    await execute(database, delete(AuditChainRow))
    assert await find_fault(database) == ("end_lost", 1)


async def test_a_content_that_cannot_be_read_counts_as_changed(database: Database) -> None:
    await append_entries(database, 6)
    await execute(database, text("UPDATE audit SET data = '{\"a\": ' WHERE id = 4"))
    assert await find_fault(database) == ("changed", 4)


async def test_a_rewritten_log_is_detected_by_a_stored_hash(database: Database) -> None:
    """A user with write access to the database can compute a whole new chain.

    Its last hash then differs from the stored one.
    """
    await append_entries(database, 6)
    noted = await verify(database)
    place = ChainPlace(noted.last_id, noted.last_hash)
    await execute(database, delete(AuditRow), delete(AuditChainRow))
    await append_entries(database, 5)
    assert await find_fault(database) is None
    assert await find_fault(database, place) == ("missing", 6)
    await append_entries(database, 3)
    assert await find_fault(database, place) == ("replaced", 6)


async def test_a_long_log_is_walked_in_batches(database: Database) -> None:
    async with database.write() as session:
        for i in range(4_321):
            record(session, f"o{i}", text="Grüße 🙂")
    assert (await verify(database)).entries == 4_321
    await execute(database, update(AuditRow).where(is_entry(3_999)).values(count=3))
    assert await find_fault(database) == ("changed", 3_999)


@both_databases
async def test_entries_may_be_appended_while_the_log_is_verified(database: Database) -> None:
    await append_entries(database, 5)
    stop = asyncio.Event()

    async def write() -> None:
        while not stop.is_set():
            await append_entries(database, 1)

    writer = asyncio.create_task(write())
    try:
        for _ in range(15):
            assert await find_fault(database) is None
    finally:
        stop.set()
        await writer


async def remove_old_entries(database: Database, keep_days: int) -> int:
    async with database.write() as session:
        return await retention.cut(session, keep_days)


async def test_entries_older_than_the_retention_time_are_removed(database: Database) -> None:
    await append_entries(database, 4)
    SKEW.seconds = 5 * DAY
    await append_entries(database, 3)
    assert await remove_old_entries(database, 0) == 0
    assert await remove_old_entries(database, 5) == 0, "it waits until the oldest is a day older"
    SKEW.seconds = 11 * DAY
    noted = ChainPlace(4, (await read_entries(database))[3].hash)
    assert await remove_old_entries(database, 10) == 4
    assert [row.object_id for row in await read_entries(database)] == ["o1", "o2", "o3", "log"]
    found = await verify(database, noted)
    assert (found.entries, found.removed, found.last_id, found.fault) == (4, 4, 8, None)
    told = (await read_entries(database))[-1]
    assert (told.action, told.project_id) == ("audit.cut", None)
    assert told.data == {"last_id": 4, "hash": noted.hash, "entries": 4, "keep_days": 10}
    assert await find_fault(database, ChainPlace(4, "f" * 64)) == ("replaced", 4)
    SKEW.seconds = 40 * DAY
    assert await remove_old_entries(database, 10) == 4
    await append_entries(database, 2)
    assert (await verify(database)).removed == 8
    assert await find_fault(database) is None


async def test_a_removal_by_hand_is_no_retention(database: Database) -> None:
    await append_entries(database, 6)
    third = (await read_entries(database))[2]
    await execute(
        database,
        delete(AuditRow).where(AuditRow.id <= 3),
        update(AuditChainRow).values(checkpoint_id=3, checkpoint_hash=third.hash),
    )
    assert await find_fault(database) == ("checkpoint", 3)


async def test_a_removal_after_that_of_the_retention_is_found(database: Database) -> None:
    await append_entries(database, 6)
    SKEW.seconds = 20 * DAY
    await append_entries(database, 3)
    assert await remove_old_entries(database, 10) == 6
    await execute(database, delete(AuditRow).where(is_entry(7)))
    assert await find_fault(database) == ("missing", 7)


@both_databases
async def test_a_removal_is_rolled_back_as_a_whole(database: Database) -> None:
    await append_entries(database, 4)
    SKEW.seconds = 20 * DAY

    async def fail() -> None:
        async with database.write() as session:
            assert await retention.cut(session, 10) == 4
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail()
    found = await verify(database)
    assert (found.entries, found.removed, found.fault) == (4, 0, None)


@both_databases
async def test_servers_remove_and_append_concurrently(
    database: Database, database_url: str
) -> None:
    """Runs two compactors and two writers: none waits without end, and the chain stays valid."""
    await append_entries(database, 30)
    SKEW.seconds = 20 * DAY
    other = Database(database_url)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.gather(
                remove_old_entries(database, 10),
                append_entries(other, 15),
                remove_old_entries(other, 10),
                append_entries(database, 15),
            )
    finally:
        await other.dispose()
    found = await verify(database)
    assert (found.removed, found.fault) == (30, None)
    cuts = [row for row in await read_entries(database) if row.action == "audit.cut"]
    assert len(cuts) == 1


async def test_a_removal_during_a_verification_is_no_fault(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await append_entries(database, 9)
    SKEW.seconds = 20 * DAY
    await append_entries(database, 2)
    monkeypatch.setattr(verification, "_BATCH", 2)
    oldest_first = audit_entries.list_oldest_first
    removed: list[int] = []

    async def remove_then_read(*arguments: Any, **options: Any) -> Any:
        if options["after"] == 4 and not removed:
            removed.append(await remove_old_entries(database, 10))
        return await oldest_first(*arguments, **options)

    monkeypatch.setattr(audit_entries, "list_oldest_first", remove_then_read)
    found = await verify(database)
    assert removed == [9]
    assert (found.fault, found.removed) == (None, 9)


async def test_the_stored_end_alone_was_moved_back(database: Database) -> None:
    await append_entries(database, 6)
    fourth = (await read_entries(database))[3]
    await execute(database, update(AuditChainRow).values(last_id=4, last_hash=fourth.hash))
    assert await find_fault(database) == ("added", 5)
    async with database.read() as session:
        assert await session.scalar(select(AuditChainRow.last_id)) == 4
