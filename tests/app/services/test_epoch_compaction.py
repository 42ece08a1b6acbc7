"""Epochs move into blocks and read the same: before, between and after, whatever is killed."""

import json
import random
import sys
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, ClassVar, Final

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from app.daemons.curve_compactor import CurveCompactor
from app.db.engine import Database
from app.db.models import EpochBlockRow, EpochStatsRow
from app.db.repositories import epochs as epoch_rows
from app.db.repositories.compaction import OutdatedError
from app.metrics import epoch_blocks
from app.metrics.columns import BlockDamagedError
from app.services.curves import record_exports, stored_epochs, stored_points
from app.services.curves.record_exports import RunningExports
from app.services.telemetry import batches, epoch_compaction
from palestra.contract.record_exports import RecordQuery
from palestra.contract.states import Cause, Outcome
from palestra.contract.telemetry import EpochStatsRecord
from tests.app.services.curve_history import CurveHistory
from tests.app.services.telemetry_training import Training
from tests.app.services.test_curve_histories import start_another
from tests.app.services.test_pack_batches import start_pack
from tests.support import records
from tests.support.artifact_store import AttemptWithStore
from tests.support.killed_program import kill_repeatedly
from tests.support.records import Json
from tests.support.server_fixture import World

ACTIONS: Final = (
    *("send", "send", "send", "repeat", "reorder", "crash", "compact", "compact"),
    *("crash_compaction", "snapshot", "resume"),
)
VALUES: Final = ("NaN", "Infinity", "-Infinity", -0.0, 0.1, 5e-324, 2.0**53 - 1, 1e308)
ROWS = 400
KILLS = 4
COMPACT = """
import asyncio, sys
from app.db.engine import Database
from app.services.telemetry import epoch_compaction

async def compact(url, run_id):
    database = Database(url)
    epoch_compaction.EPOCHS = 7
    print("begins", flush=True)
    await epoch_compaction.compact_run(database, run_id)
    await database.dispose()

asyncio.run(compact(*sys.argv[1:]))
"""


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of few epochs, of which few are moved or read at once."""
    monkeypatch.setattr(epoch_blocks, "MAX_BYTES", 900)
    monkeypatch.setattr(epoch_compaction, "EPOCHS", 4)
    monkeypatch.setattr(stored_epochs, "_PAGE_EPOCHS", 3)


@dataclass
class EpochHistory(CurveHistory):
    """What a run's attempts sent of epochs, with the actions that a test may take."""

    rows: ClassVar[ModuleType] = epoch_rows
    epochs: list[tuple[int, Json]] = field(default_factory=list)
    """Fence and record of each epoch that was acknowledged."""

    async def compact(self) -> None:
        """Moves the epochs of the run into blocks."""
        await epoch_compaction.compact_run(self.run.database, self.run.run_id)

    def list_epochs(self, *, superseded: bool) -> list[tuple[int, Json]]:
        """Returns the epochs as they should be read."""
        return [
            (fence, record)
            for fence, record in sorted(self.epochs, key=lambda one: one[0])
            if superseded or self.counts(fence, (record["total_env_steps"], record["update"]))
        ]

    def _acknowledge(self, first_seq: int, content: Any) -> None:
        self.run.seq = max(self.run.seq, first_seq + len(content) - 1)
        self.epochs += [(self.fence, one) for one in content if one["type"] != "log"]

    def _make_record(self) -> Json:
        choose = self.chooser
        if choose.random() < 0.2:
            return records.make_log(self.run.run_id, "a line")
        names = choose.sample(("episode_return", "episode_length", "b", "a"), 3)
        episodes = [
            {name: choose.choice(VALUES) for name in names} for _ in range(choose.randrange(4))
        ]
        return records.make_stats(self.run.run_id, choose.choice((0, 20, 40, 2**53 - 1))) | {
            "total_epoch": choose.randrange(2**53),
            "wall": 1_700_000_000 + choose.random() * 1e6,
            "last_episode": episodes if episodes or choose.random() < 0.5 else None,
        }


async def read_texts(database: Database, run_id: str) -> list[str]:
    """Returns the epochs of a run as their JSON texts."""
    async with database.read() as session:
        state = await stored_points.load_state(session, run_id, ())
        total = await epoch_rows.count(session, run_id)
    pages = stored_epochs.read_epochs(database, state, total)
    return [one.record.model_dump_json() async for page in pages for one in page]


async def count(database: Database, model: Any) -> int:
    async with database.read() as session:
        return await session.scalar(select(func.count()).select_from(model)) or 0


def to_text(record: Json) -> str:
    return EpochStatsRecord.model_validate_json(json.dumps(record)).model_dump_json()


async def export(world: World, run_id: str, form: str = "arrow", **body: Any) -> bytes:
    wanted = RecordQuery(kind="epochs", runs=(run_id,), **body)
    found = await record_exports.export(
        world.database, world.admin, wanted, form, RunningExports()  # type: ignore[arg-type]
    )  # fmt: skip
    try:
        return b"".join([piece async for piece in found.read()])
    finally:
        await found.close()


def read_arrow(content: bytes) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pa.ipc.open_stream(content).read_all().to_pylist()
    return rows


@pytest.mark.usefixtures("small_blocks")
@settings(
    max_examples=12,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # shrinking takes many minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(seed=st.integers(0, 2**32 - 1), plan=st.lists(st.sampled_from(ACTIONS), max_size=30))
async def test_any_history_of_a_run_reads_as_its_list_of_epochs(
    live_run: AttemptWithStore, monkeypatch: pytest.MonkeyPatch, seed: int, plan: list[str]
) -> None:
    run = await start_another(live_run)
    history = EpochHistory(run, random.Random(seed), monkeypatch)
    for action in plan:
        await history.act(action)
    expected = [to_text(record) for _, record in history.list_epochs(superseded=True)]
    assert await read_texts(run.database, run.run_id) == expected, "byte by byte"
    for superseded in (False, True):
        rows = read_arrow(await export(run.world, run.run_id, superseded=superseded))
        wanted = history.list_epochs(superseded=superseded)
        assert [repr(summarise(row)) for row in rows] == [
            repr((fence, *list_members(record))) for fence, record in wanted
        ]
    await run.world.release(run.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET, last_seq=run.seq)


def summarise(row: dict[str, Any]) -> tuple[Any, ...]:
    """Returns the fence of a row and what `list_members` returns of its record."""
    episodes = row["last_episode"]
    return (
        *(row[name] for name in ("fence", "total_epoch", "env_step", "wall")),
        None
        if episodes is None
        else [[(one["name"], one["value"]) for one in some] for some in episodes],
    )


def list_members(record: Json) -> tuple[Any, ...]:
    """Returns members of a record, with names and values of metrics in order."""
    episodes = record["last_episode"]
    return (
        *(record[name] for name in ("total_epoch", "total_env_steps", "wall")),
        None
        if episodes is None
        else [[(name, float(value)) for name, value in one.items()] for one in episodes],
    )


async def test_epochs_of_a_live_attempt_stay_rows_until_they_are_many(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(epoch_compaction, "EPOCHS", 8)
    database, run = training.database, training.run_id
    expected = [to_text(records.make_stats(run, step)) for step in range(8)]
    await training.send(1, [records.make_stats(run, step) for step in range(7)])
    await CurveCompactor(database).tick()
    assert (await count(database, EpochStatsRow), await count(database, EpochBlockRow)) == (7, 0)
    await training.send(8, [records.make_stats(run, 7)])
    await CurveCompactor(database).tick()
    assert (await count(database, EpochStatsRow), await count(database, EpochBlockRow)) == (0, 1)
    assert await read_texts(database, run) == expected
    await training.send(9, [records.make_stats(run, 8)])
    await CurveCompactor(database).tick()
    assert await count(database, EpochStatsRow) == 1
    await training.world.release(training.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET, last_seq=9)
    await CurveCompactor(database).tick()
    assert (await count(database, EpochStatsRow), await count(database, EpochBlockRow)) == (0, 1)
    expected.append(to_text(records.make_stats(run, 8)))
    assert await read_texts(database, run) == expected


async def test_each_run_of_a_pack_has_blocks_of_its_own(world: World, database: Database) -> None:
    order = await start_pack(world, range(3))

    async def send(first_seq: int, steps: range) -> None:
        content = [records.make_stats(run.run_id, step) for step in steps for run in order.runs]
        async with database.write() as session:
            delivery = records.make_delivery(order.attempt_id, first_seq, content)
            await batches.take(session, delivery)

    await send(1, range(63))
    assert await epoch_compaction.compact_epochs(database) == 0, "63 of each run"
    await send(190, range(63, 64))
    assert await epoch_compaction.compact_epochs(database) == 3 * 64
    assert await epoch_compaction.compact_epochs(database) == 0
    assert await count(database, EpochBlockRow) == 3
    for run in order.runs:
        expected = [to_text(records.make_stats(run.run_id, step)) for step in range(64)]
        assert await read_texts(database, run.run_id) == expected


async def test_a_run_whose_epochs_cannot_be_moved_does_not_keep_back_others(
    world: World, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = await start_pack(world, range(2))
    content = [records.make_stats(run.run_id, step) for step in range(64) for run in order.runs]
    async with database.write() as session:
        await batches.take(session, records.make_delivery(order.attempt_id, 1, content))
    load, failing = epoch_rows.load_oldest, min(run.run_id for run in order.runs)

    async def fail_for_one(session: Any, run_id: str, most: int) -> Any:
        if run_id == failing:
            raise BlockDamagedError("unreadable")
        return await load(session, run_id, most)

    monkeypatch.setattr(epoch_rows, "load_oldest", fail_for_one)
    assert await epoch_compaction.compact_epochs(database) == 64
    monkeypatch.undo()
    assert await epoch_compaction.compact_epochs(database) == 64


@pytest.mark.usefixtures("small_blocks")
async def test_a_round_moves_a_bounded_number_of_epochs(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many rows take many rounds, between which points are compacted."""
    monkeypatch.setattr(epoch_compaction, "MAX_EPOCHS", 10)
    await training.send(1, [records.make_stats(training.run_id, step) for step in range(20)])
    assert await epoch_compaction.compact_epochs(training.database) == 12
    assert await count(training.database, EpochStatsRow) == 8
    assert await epoch_compaction.compact_epochs(training.database) == 8
    expected = [to_text(records.make_stats(training.run_id, step)) for step in range(20)]
    assert await read_texts(training.database, training.run_id) == expected


@pytest.mark.both_databases(
    "Rows of a run are locked on PostgreSQL while its epochs are moved.",
    of=("app.db.repositories.telemetry",),
)
@pytest.mark.usefixtures("small_blocks")
async def test_two_compactions_of_the_same_epochs_store_them_once(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, run = training.database, training.run_id
    await training.send(1, [records.make_stats(run, step) for step in range(6)])
    replace = epoch_rows.replace

    async def replace_after_another(*arguments: Any) -> None:
        monkeypatch.setattr(epoch_rows, "replace", replace)
        assert await epoch_compaction.compact_run(database, run) == 6
        await replace(*arguments)

    if database.engine.dialect.name == "sqlite":
        # Only one transaction writes at once there.
        async with database.read() as session:
            moved = await epoch_rows.load_oldest(session, run, 4)
        assert await epoch_compaction.compact_run(database, run) == 6
        with pytest.raises(OutdatedError):
            async with database.write() as session:
                await epoch_rows.replace(session, moved, None, [])
    else:
        monkeypatch.setattr(epoch_rows, "replace", replace_after_another)
        assert await epoch_compaction.compact_run(database, run) == 0
    assert await count(database, EpochStatsRow) == 0
    expected = [to_text(records.make_stats(run, step)) for step in range(6)]
    assert await read_texts(database, run) == expected


@pytest.mark.usefixtures("small_blocks")
async def test_each_epoch_is_exported_once_while_the_compactor_runs(
    live_run: AttemptWithStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, run = live_run.database, live_run.run_id
    await live_run.send(*(records.make_stats(run, step) for step in range(40)))
    read = epoch_rows.read_next
    parts = 0

    async def read_beside_the_compactor(*arguments: Any) -> Any:
        nonlocal parts
        found = await read(*arguments)
        parts += 1
        if parts % 3 == 0:
            await live_run.send(records.make_stats(run, 1_000))
            await epoch_compaction._compact_oldest(database, run)
        return found

    monkeypatch.setattr(epoch_rows, "read_next", read_beside_the_compactor)
    rows = read_arrow(await export(live_run.world, run))
    assert [row["env_step"] for row in rows] == [*range(40)], "and none that arrived later"
    assert parts > 10
    assert await count(database, EpochBlockRow) > 1


async def test_epochs_that_are_deleted_meanwhile_break_the_export(
    live_run: AttemptWithStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await live_run.send(*(records.make_stats(live_run.run_id, step) for step in range(3)))

    async def read_nothing(*_: Any) -> list[Any]:
        return []

    monkeypatch.setattr(epoch_rows, "read_next", read_nothing)
    with pytest.raises(stored_points.PointsMissingError, match="0 of 3 epochs"):
        await export(live_run.world, live_run.run_id)


async def test_epochs_are_exported_in_every_form(live_run: AttemptWithStore) -> None:
    run = live_run.run_id
    episodes = [{"episode_return": "NaN", "episode_length": 9.0}, {"episode_return": -0.0}]
    await live_run.send(
        records.make_stats(run, 5) | {"last_episode": episodes, "wall": 10.0},
        records.make_stats(run, 9) | {"wall": 10.5},
    )
    first, second = read_arrow(await export(live_run.world, run))
    assert repr(first | {"run_id": ""}) == repr({
        "run_id": "", "total_epoch": 1, "total_itr": 5, "env_step": 5, "update": 3, "episode": 2,
        "wall": 10.0, "relative": 0.0,
        "last_episode": [
            [{"name": "episode_return", "value": float("nan")},
             {"name": "episode_length", "value": 9.0}],
            [{"name": "episode_return", "value": -0.0}],
        ],
        "fence": 1, "superseded": False,
    })  # fmt: skip
    assert (second["last_episode"], second["relative"]) == (None, 0.5)
    head, *lines = (await export(live_run.world, run, "csv")).decode().splitlines()
    assert head.split(",") == list(first)
    cell = '[{"episode_return":"NaN","episode_length":9.0},{"episode_return":-0.0}]'
    quoted = cell.replace('"', '""')
    assert lines == [
        f'{run},1,5,5,3,2,10.0,0.0,"{quoted}",1,false',
        f"{run},1,5,9,3,2,10.5,0.5,,1,false",
    ]
    ranged = read_arrow(await export(live_run.world, run, start=6.0, columns=("env_step",)))
    assert ranged == [{"env_step": 9}]


@pytest.mark.processes
async def test_a_compaction_that_is_killed_loses_no_epoch_and_continues(
    training: Training, database_url: str
) -> None:
    """Many rows are moved by a process that is killed at random moments."""
    run = training.run_id
    sent = [records.make_stats(run, step) | {"total_epoch": step} for step in range(ROWS)]
    await training.send(1, sent)
    expected = [to_text(record) for record in sent]
    left = [ROWS]
    command = [sys.executable, "-c", COMPACT, database_url, run]
    async for _ in kill_repeatedly(command, KILLS, 0.1):
        left.append(await count(training.database, EpochStatsRow))
        assert await read_texts(training.database, run) == expected
    assert left == sorted(left, reverse=True)
    assert left[-1] == 0
