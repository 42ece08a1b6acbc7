"""The hash chain of the audit log: hashes are computed at commit, in commit order, without gaps."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import delete, select, text

from app.db.clock import SKEW
from app.db.engine import Database, Session
from app.db.models import AuditChainRow, AuditRow, ProjectRow
from app.db.repositories import audit as rows
from app.domain.audit_chain import GENESIS
from app.services.audit import audit_log
from app.services.audit.audit_log import RequestOrigin
from app.services.events import event_log
from palestra.contract.names import new_id
from tests.support.server_fixture import World

pytestmark = pytest.mark.both_databases(
    "Times and documents have other types on each database, and hashes are computed of both.",
    of=(
        "app.db.clock",
        "app.db.models.audit",
        "app.db.models.base",
    ),
)


async def read_entries(database: Database) -> Sequence[AuditRow]:
    """Returns all entries, the oldest first."""
    async with database.read() as session:
        return (await session.scalars(select(AuditRow).order_by(AuditRow.id))).all()


async def read_end(database: Database) -> tuple[int, str]:
    """Returns the stored end of the chain."""
    async with database.read() as session:
        chain = (await session.scalars(select(AuditChainRow))).one()
        return chain.last_id, chain.last_hash


async def check_chain(database: Database) -> Sequence[AuditRow]:
    """Asserts that the entries form a chain from 1 to the stored end, and returns them."""
    found = await read_entries(database)
    assert [row.id for row in found] == list(range(1, len(found) + 1))
    assert [row.hash for row in found] == [rows.compute_hash(row) for row in found]
    assert [row.previous_hash for row in found] == [GENESIS, *(row.hash for row in found[:-1])]
    assert await read_end(database) == (found[-1].id, found[-1].hash)
    return found


def record(session: Session, object_id: str, **data: Any) -> None:
    audit_log.record(
        session, "thing.change", object_id, project_id="prj_x", actor="user:usr_a", data=data
    )


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"text": 'Grüße, 你好 🙂 \u2028 "quoted" \\ \t\n'},
        {"nul": "\0", "key \0": "é", "combining": "e\u0301"},
        {"numbers": [0, -1, 2**53, 2**70, 0.1, 1.0, -0.0, 1e22, 5e-324, 1.7976931348623157e308]},
        {"nested": {"b": [None, True, {"a": []}], "a": ""}},
        {"long": "ä" * 1_000_000},
    ],
    ids=["empty", "text", "nul", "numbers", "nested", "long"],
)
async def test_the_hash_is_computed_again_from_what_is_stored(
    database: Database, data: dict[str, Any]
) -> None:
    async with database.write() as session:
        record(session, "thing", **data)
    (row,) = await check_chain(database)
    assert row.data == data
    assert (row.actor, row.user_id, row.credential, row.address) == (
        "user:usr_a",
        "usr_a",
        None,
        None,
    )
    assert (row.action, row.object_type, row.object_id) == ("thing.change", "thing", "thing")
    assert (row.outcome, row.code, row.count) == ("allowed", None, 1)


async def test_entries_name_the_origin_of_their_transaction(database: Database) -> None:
    origin = RequestOrigin(address="2001:db8::7", user_id="usr_p", credential="ses_1")
    async with database.write() as session:
        audit_log.set_origin(session, origin)
        record(session, "a")
    async with database.write() as session:
        for actor in ("token:tok_1", "worker:wrk_1", "attempt:att_1", "daemon:reaper"):
            audit_log.record(session, "thing.change", "b", project_id=None, actor=actor)
    first, *others = await check_chain(database)
    assert (first.address, first.user_id, first.credential) == ("2001:db8::7", "usr_p", "ses_1")
    assert [row.credential for row in others] == ["tok_1", "wrk_1", "att_1", None]
    assert {(row.user_id, row.address, row.project_id) for row in others} == {(None, None, None)}


async def test_a_rolled_back_transaction_leaves_neither_an_entry_nor_a_gap(
    database: Database,
) -> None:
    async def fail() -> None:
        async with database.write() as session:
            record(session, "lost")
            await session.flush()
            raise RuntimeError

    for name in ("before", "after"):
        with pytest.raises(RuntimeError):
            await fail()
        async with database.write() as session:
            record(session, name)
    assert [row.object_id for row in await check_chain(database)] == ["before", "after"]


async def test_a_commit_that_fails_after_the_insert_leaves_no_gap(database: Database) -> None:
    """The process still has the entry of the failed commit as the last one and must read the stored
    one.
    """

    async def fail() -> None:
        async with database.write() as session:
            record(session, "lost")
            await session.run_sync(lambda inner: inner.dispatch.before_commit(inner))
            assert (await session.scalars(select(AuditRow.object_id))).all()[-1] == "lost"
            raise RuntimeError

    async with database.write() as session:
        record(session, "before")
    with pytest.raises(RuntimeError):
        await fail()
    async with database.write() as session:
        record(session, "after")
    assert [row.object_id for row in await check_chain(database)] == ["before", "after"]


async def test_a_rolled_back_savepoint_leaves_no_entry(database: Database) -> None:
    async with database.write() as session:
        record(session, "before")
        event_log.record(session, "job", {}, project_id="prj_x")
        async with session.begin_nested() as inner:
            record(session, "inside")
            event_log.record(session, "job", {}, project_id="prj_x")
            async with session.begin_nested():
                record(session, "deeper")
            await inner.rollback()
        async with session.begin_nested():
            record(session, "kept")
    assert [row.object_id for row in await check_chain(database)] == ["before", "kept"]
    async with database.read() as session:
        assert len((await session.execute(text("SELECT id FROM events"))).all()) == 1


async def test_entries_are_in_commit_order(database: Database, database_url: str) -> None:
    """Two servers write concurrently; each must read the last entry of the other."""
    other = Database(database_url, pool_size=20)
    try:

        async def write(server: Database, name: str) -> None:
            for i in range(15):
                async with server.write() as session:
                    record(session, f"{name}/{i}")
                    if i % 3 == 0:
                        record(session, f"{name}/{i}+")
                    for _ in range(5 * (i % 4)):
                        await asyncio.sleep(0)

        writers = [
            write(server, f"{number}/{writer}")
            for number, server in enumerate((database, other))
            for writer in range(4)
        ]
        await asyncio.gather(*writers)
    finally:
        await other.dispose()
    found = await check_chain(database)
    assert len(found) == 8 * 20
    for writer in {row.object_id.rpartition("/")[0] for row in found}:
        own = [row.object_id for row in found if row.object_id.startswith(f"{writer}/")]
        assert own == sorted(own, key=lambda name: (int(name.strip("+").split("/")[-1]), name))
    assert all(one.at <= two.at for one, two in pairwise(found))


async def test_entries_remain_after_their_project_is_deleted(database: Database) -> None:
    """Regression: `audit.project_id` cascaded, so deleting a project deleted its audit entries."""
    project = ProjectRow(id=new_id("prj"), slug="short", name="short")
    async with database.write() as session:
        session.add(project)
        await session.flush()
        audit_log.record(
            session, "project.create", project.id, project_id=project.id, actor="user:usr_a"
        )
    async with database.write() as session:
        await session.execute(delete(ProjectRow).where(ProjectRow.id == project.id))
    (row,) = await check_chain(database)
    assert row.project_id == project.id


async def test_the_time_is_that_of_the_commit_in_utc(database: Database) -> None:
    SKEW.seconds = 3_600.0
    before = datetime.now(UTC)
    async with database.write() as session:
        record(session, "late")
    (row,) = await check_chain(database)
    assert 3_599 < (row.at - before).total_seconds() < 3_660
    assert row.at.tzinfo is UTC


async def test_the_hash_does_not_depend_on_the_time_zone_of_the_connection(
    database: Database, database_url: str
) -> None:
    async with database.write() as session:
        record(session, "thing")
        if database_url.startswith("postgresql"):
            await session.execute(text("SET LOCAL TIME ZONE 'Asia/Kathmandu'"))
    async with database.read() as session:
        if database_url.startswith("postgresql"):
            await session.execute(text("SET LOCAL TIME ZONE 'America/St_Johns'"))
        (row,) = (await session.scalars(select(AuditRow))).all()
        assert rows.compute_hash(row) == row.hash
    await check_chain(database)


async def test_a_chain_without_its_stored_end_continues_from_the_last_entry(
    database: Database,
) -> None:
    async with database.write() as session:
        record(session, "one")
    async with database.write() as session:
        await session.execute(delete(AuditChainRow))
    async with database.write() as session:
        record(session, "two")
    assert [row.object_id for row in await check_chain(database)] == ["one", "two"]


async def test_every_transition_of_a_job_is_in_the_chain(world: World, database: Database) -> None:
    worker = await world.register()
    job = await world.submit_one_job()
    await world.pause(job.id)
    await world.resume(job.id)
    await world.start(job.id, worker.worker_id)
    moves = [row for row in await check_chain(database) if row.action == "job.move"]
    assert [row.data["to"] for row in moves] == ["paused", "queued", "starting", "running"]
    assert [row.credential for row in moves][2:] == [moves[2].actor[7:], moves[3].actor[8:]]
