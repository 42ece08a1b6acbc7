"""Accounting: sums of the ledger and of live attempts by groups and time, and who may read them."""

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.db.clock import now
from app.db.engine import Database
from app.db.models import UsageEntryRow
from app.domain.errors import InvalidError
from app.domain.principal import Principal
from app.services.usage import export, reports
from palestra.contract.names import new_id
from palestra.contract.usage import UsageBucketSize, UsageKey, UsageQuery, UsageReport
from tests.app.services.test_pools import make_other_project, submit_definition
from tests.support.server_fixture import World, advance_clock

both_databases = pytest.mark.both_databases(
    "Times are numbers on SQLite, and intervals are computed by functions of each database.",
    of=("app.db.repositories.usage_reports",),
)

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)


async def book(world: World, start: datetime, length: timedelta, **changes: Any) -> None:
    """Appends an entry to the ledger."""
    entry = {
        "id": new_id("use"),
        "kind": "used",
        "pool": "default",
        "project_id": world.project_id,
        "user_id": world.admin.user_id,
        "experiment_id": "e-cart",
        "job_id": "job_1",
        "attempt_id": new_id("att"),
        "worker_id": "wrk_1",
        "schedule": "train",
        "priority_class": "normal",
        "environment": "CartPole-v1",
        "devices": 1,
        "is_gpu": False,
        "started_at": start,
        "ended_at": start + length,
        **changes,
    }
    async with world.database.write() as session:
        session.add(UsageEntryRow(**entry))


async def report(world: World, caller: Principal | None = None, **query: Any) -> UsageReport:
    async with world.database.read() as session:
        return await reports.report(session, caller or world.admin, make_query(**query))


def make_query(**members: Any) -> UsageQuery:
    if members.get("bucket"):
        members["bucket"] = UsageBucketSize(members["bucket"])
    return UsageQuery(**members)


def march(**query: Any) -> dict[str, Any]:
    """Two weeks from `MONDAY` on."""
    return {"since": MONDAY, "until": MONDAY + timedelta(days=14), **query}


def seconds(found: UsageReport, key: str) -> dict[str | None, tuple[float, float]]:
    return {getattr(one, key): (one.used_seconds, one.lost_seconds) for one in found.groups}


@both_databases
async def test_usage_is_grouped_by_each_key(world: World) -> None:
    await book(world, MONDAY, HOUR)
    await book(world, MONDAY, HOUR, user_id=world.other.user_id, devices=2, is_gpu=True)
    await book(world, MONDAY, HOUR / 2, kind="lost", environment=None, experiment_id="e-sup")
    await book(world, MONDAY, HOUR, pool="lab")
    project = (await report(world, **march())).groups
    assert [(one.project, one.user, one.used_seconds) for one in project] == [
        ("default", None, 14_400.0)
    ]
    assert (project[0].gpu_seconds, project[0].lost_seconds) == (7_200.0, 1_800.0)
    for key, expected in (
        ("user", {"admin": (7_200.0, 1_800.0), "bea": (7_200.0, 0.0)}),
        ("experiment", {"e-cart": (14_400.0, 0.0), "e-sup": (0.0, 1_800.0)}),
        ("environment", {"CartPole-v1": (14_400.0, 0.0), None: (0.0, 1_800.0)}),
        ("pool", {"default": (10_800.0, 1_800.0), "lab": (3_600.0, 0.0)}),
    ):
        found = await report(world, **march(by=(UsageKey(key),)))
        assert seconds(found, key) == expected, key
        assert (found.used_seconds, found.lost_seconds) == (14_400.0, 1_800.0)
    pairs = (await report(world, **march(by=(UsageKey.USER, UsageKey.POOL)))).groups
    assert {(one.user, one.pool): one.used_seconds for one in pairs} == {
        ("admin", "default"): 3_600.0,
        ("admin", "lab"): 3_600.0,
        ("bea", "default"): 7_200.0,
    }


@both_databases
async def test_an_interval_is_divided_among_the_days_that_it_overlaps(world: World) -> None:
    await book(world, MONDAY + timedelta(hours=18), timedelta(hours=36), devices=2)
    await book(world, MONDAY + timedelta(hours=1), HOUR)
    found = await report(world, **march(bucket="day"))
    assert len(found.starts) == 14
    assert [(one.start - MONDAY, one.used_seconds) for one in found.groups[0].buckets] == [
        (timedelta(days=0), 3_600.0 + 2 * 6 * 3_600.0),
        (timedelta(days=1), 2 * 86_400.0),
        (timedelta(days=2), 2 * 6 * 3_600.0),
    ]
    assert found.used_seconds == sum(one.used_seconds for one in found.groups[0].buckets)
    inner = await report(
        world,
        since=MONDAY + timedelta(hours=20),
        until=MONDAY + timedelta(hours=22, minutes=30),
        bucket="hour",
    )
    assert [one.used_seconds for one in inner.groups[0].buckets] == [7_200.0, 7_200.0, 3_600.0]


@both_databases
async def test_each_sum_equals_the_sum_over_the_entries(world: World) -> None:
    lengths = [timedelta(minutes=7 * number, microseconds=number) for number in range(1, 60)]
    for number, length in enumerate(lengths):
        start = MONDAY + timedelta(minutes=131 * number)
        await book(world, start, length, devices=1 + number % 3)
    whole = sum(length.total_seconds() * (1 + number % 3) for number, length in enumerate(lengths))
    for bucket in (None, "hour", "day", "week"):
        found = await report(world, **march(bucket=bucket))
        assert found.used_seconds == pytest.approx(whole, abs=1e-3)
        parts = [one.used_seconds for group in found.groups for one in group.buckets]
        assert sum(parts) == pytest.approx(whole, abs=1e-3)


async def test_live_attempts_count_until_now(
    world: World, passed_seconds: Callable[[], float]
) -> None:
    worker = (await world.register()).worker_id
    job = await world.submit_one_job()
    await world.start(job.id, worker)
    advance_clock(500)
    found = await report(world, bucket="hour")
    assert found.used_seconds == pytest.approx(500, abs=passed_seconds())
    by_environment = await report(world, by=(UsageKey.ENVIRONMENT,))
    assert list(seconds(by_environment, "environment")) == ["CartPole-v1"]


async def test_a_member_reads_nothing_of_other_projects(world: World) -> None:
    neighbour = await make_other_project(world)
    await book(world, MONDAY, HOUR, experiment_id="e-secret", environment="Secret-v0")
    (theirs,) = neighbour.memberships
    await book(world, MONDAY, HOUR / 4, project_id=theirs.project_id, user_id=neighbour.user_id)
    for key in UsageKey:
        found = await report(world, neighbour, **march(by=(key,)))
        assert found.used_seconds == 900.0
        text = found.model_dump_json().lower()
        assert not any(word in text for word in ("secret", "admin", '"project":"default"'))
    for named in ({"project": "default"}, {"project": "nothing"}):
        with pytest.raises(InvalidError) as refused:
            await report(world, neighbour, **march(**named))
        assert (refused.value.code, refused.value.pointer) == ("no_such_project", "query/project")
    assert (await report(world, neighbour, **march(user="admin"))).groups == []
    everybody = await report(world, replace(world.admin, is_admin=True), **march())
    assert seconds(everybody, "project") == {"default": (3_600.0, 0.0), "other": (900.0, 0.0)}


@both_databases
async def test_filters_keep_what_they_name(world: World) -> None:
    await book(world, MONDAY, HOUR)
    await book(world, MONDAY, HOUR, user_id=world.other.user_id, experiment_id="e-2", pool="lab")
    await world.make_pool("lab")
    for named in ({"user": "bea"}, {"experiment": "e-2"}, {"pool": "lab"}):
        found = await report(world, **march(by=(UsageKey.USER,), **named))
        assert seconds(found, "user") == {"bea": (3_600.0, 0.0)}, named
    mine = await report(world, world.other, **march(by=(UsageKey.USER,), user="me"))
    assert seconds(mine, "user") == {"bea": (3_600.0, 0.0)}
    assert (await report(world, **march(environment="Walk-v0"))).groups == []
    with pytest.raises(InvalidError) as refused:
        await report(world, **march(pool="nowhere"))
    assert (refused.value.code, refused.value.pointer) == ("unknown_pool", "query/pool")


async def test_usage_outlives_projects_and_users(world: World) -> None:
    await book(world, MONDAY, HOUR, project_id="prj_gone", user_id="usr_gone")
    await book(world, MONDAY, HOUR, project_id="prj_away", user_id="usr_away")
    found = await report(world, **march(by=(UsageKey.PROJECT, UsageKey.USER)))
    assert [(one.project, one.user, one.used_seconds) for one in found.groups] == [
        ("(deleted project)", "(deleted user)", 7_200.0)
    ]


async def test_groups_beyond_the_largest_are_one(world: World) -> None:
    for number in range(reports.MAX_GROUPS + 3):
        length = timedelta(seconds=1_000 - number)
        await book(world, MONDAY, length, experiment_id=f"e-{number:03}")
    found = await report(world, **march(by=(UsageKey.EXPERIMENT,), bucket="week"))
    assert [one.experiment for one in found.groups[:2]] == ["e-000", "e-001"]
    assert (len(found.groups), found.rest_groups) == (reports.MAX_GROUPS, 3)
    assert found.rest is not None
    assert found.rest.used_seconds == 900.0 + 899.0 + 898.0
    assert found.rest.buckets[0].used_seconds == found.rest.used_seconds


@pytest.mark.parametrize(
    ("query", "code", "pointer"),
    [
        ({"since": MONDAY, "until": MONDAY}, "period_reversed", "query/since"),
        ({"since": datetime(2999, 1, 1, tzinfo=UTC)}, "period_reversed", "query/since"),
        (
            {"since": MONDAY, "until": MONDAY + timedelta(days=42), "bucket": "hour"},
            "too_many_buckets",
            "query/bucket",
        ),
    ],
)
async def test_faulty_periods_are_refused(
    world: World, query: dict[str, Any], code: str, pointer: str
) -> None:
    with pytest.raises(InvalidError) as refused:
        await report(world, **query)
    assert (refused.value.code, refused.value.pointer) == (code, pointer)


async def test_the_export_has_all_groups_in_the_order_of_time(
    world: World, database: Database
) -> None:
    await book(world, MONDAY + timedelta(hours=20), timedelta(hours=8), environment="=1+1")
    for number in range(reports.MAX_GROUPS + 5):
        start = MONDAY + timedelta(days=40, seconds=number)
        await book(world, start, HOUR, environment=f"Env-{number:03}")
    query = make_query(
        by=(UsageKey.ENVIRONMENT,),
        bucket="day",
        since=MONDAY,
        until=MONDAY + timedelta(days=50),
    )
    pieces = [piece async for piece in await export.export(database, world.admin, query)]
    rows = list(csv.DictReader(io.StringIO(b"".join(pieces).decode(), newline="")))
    assert len(pieces) == 3
    assert len(rows) == 2 + reports.MAX_GROUPS + 5
    assert rows[0] == {
        "start": "2026-03-02T00:00:00Z",
        "end": "2026-03-03T00:00:00Z",
        "environment": "'=1+1",
        "used_device_seconds": "14400.000",
        "gpu_seconds": "0.000",
        "lost_device_seconds": "0.000",
    }
    assert [row["start"] for row in rows] == sorted(row["start"] for row in rows)
    whole = sum(float(row["used_device_seconds"]) for row in rows)
    async with database.read() as session:
        assert await now(session) > MONDAY
    assert whole == 8 * 3_600 + (reports.MAX_GROUPS + 5) * 3_600


async def test_a_faulty_export_is_refused_before_its_first_line(
    world: World, database: Database
) -> None:
    with pytest.raises(InvalidError):
        await export.export(database, world.admin, UsageQuery(project="nothing"))


async def test_a_member_of_another_project_exports_its_own(
    world: World, database: Database
) -> None:
    neighbour = await make_other_project(world)
    await submit_definition(world, neighbour)
    await book(world, MONDAY, HOUR)
    query = UsageQuery(since=MONDAY, until=MONDAY + timedelta(days=1))
    pieces = [piece async for piece in await export.export(database, neighbour, query)]
    assert b"".join(pieces).count(b"\r\n") == 1
