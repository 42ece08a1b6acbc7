"""Exports of points, episodes and evaluations: every record once, exact, whatever happens."""

import io
import json
import struct
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import delete

from app.db.models import TailRow
from app.db.repositories.stored_points import RecordKey
from app.domain.errors import DomainError, TooManyRequestsError
from app.metrics import blocks
from app.metrics import compaction as block_sizes
from app.metrics.columns import Columns
from app.services.curves import record_exports, record_rows, stored_points
from app.services.curves.record_exports import RunningExports
from app.services.curves.stored_points import PointsMissingError
from app.services.telemetry import compaction
from palestra.contract.record_exports import RecordFormat, RecordQuery
from tests.support import records
from tests.support.artifact_store import AttemptWithStore
from tests.support.server_fixture import World
from tests.support.training import train

both_databases = pytest.mark.both_databases(
    "The databases store numbers and documents in types of their own.",
    of=("app.db.models.base",),
)

SPECIAL: list[float | str] = [
    "NaN",
    "Infinity",
    "-Infinity",
    -0.0,
    0.0,
    5e-324,
    -2.5e-310,
    2.0**53 - 1,
    0.1,
    1e308,
]


async def open_export(
    world: World, form: RecordFormat = "arrow", running: RunningExports | None = None, **body: Any
) -> record_exports.RecordExport:
    wanted = RecordQuery.model_validate_json(json.dumps(body))
    return await record_exports.export(
        world.database, world.admin, wanted, form, running or RunningExports()
    )


async def export(world: World, form: RecordFormat = "arrow", **body: Any) -> bytes:
    found = await open_export(world, form, **body)
    try:
        return b"".join([piece async for piece in found.read()])
    finally:
        await found.close()


async def read_rows(world: World, **body: Any) -> list[dict[str, Any]]:
    content = await export(world, **body)
    rows: list[dict[str, Any]] = pa.ipc.open_stream(content).read_all().to_pylist()
    return rows


async def refuse(world: World, **body: Any) -> tuple[str, str | None, str]:
    with pytest.raises(DomainError) as caught:
        await open_export(world, **body)
    return caught.value.code, caught.value.pointer, caught.value.detail


def to_bits(values: list[float]) -> list[bytes]:
    return [struct.pack("<d", value) for value in values]


@both_databases
@pytest.mark.parametrize("is_compacted", [False, True])
async def test_every_form_restores_every_bit(
    live_run: AttemptWithStore, is_compacted: bool
) -> None:
    world, run = live_run.world, live_run.run_id
    steps = [*range(9), 2**53 - 1]
    points = records.make_points(run, "loss", steps, SPECIAL)
    await live_run.send(points | {"wall": [1_700_000_000.123 + one for one in range(10)]})
    if is_compacted:
        assert await compaction.compact_tail(world.database, run) == 1
    expected = to_bits([float(value) for value in SPECIAL])
    arrow = pa.ipc.open_stream(await export(world, runs=[run])).read_all()
    parquet = pq.read_table(io.BytesIO(await export(world, "parquet", runs=[run])))
    head, *lines = (await export(world, "csv", runs=[run])).decode().splitlines()
    cells = [dict(zip(head.split(","), line.split(","), strict=True)) for line in lines]
    assert to_bits(arrow["value"].to_pylist()) == expected
    assert to_bits(parquet["value"].to_pylist()) == expected
    assert to_bits([float(row["value"]) for row in cells]) == expected
    for table in (arrow, parquet):
        assert table["env_step"].to_pylist() == steps
        assert table["run_id"].to_pylist() == [run] * len(steps)
    assert [int(row["env_step"]) for row in cells] == steps
    assert [float(row["wall"]) for row in cells] == arrow["wall"].to_pylist()
    assert [row["value"] for row in cells[:7]] == [
        "NaN", "Infinity", "-Infinity", "-0.0", "0.0", "5e-324", "-2.5e-310",
    ]  # fmt: skip
    assert [row["superseded"] for row in cells] == ["false"] * len(steps)


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_points, "PAGE_POINTS", 7)
    monkeypatch.setattr(record_exports, "_PIECE_ROWS", {"csv": 5, "arrow": 5})
    monkeypatch.setattr(blocks, "MAX_POINTS", 8)
    monkeypatch.setattr(block_sizes, "COMPLETE", 4)


@pytest.mark.usefixtures("small_pages")
async def test_each_point_is_exported_once_while_the_compactor_runs(
    live_run: AttemptWithStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, run = live_run.world, live_run.run_id
    sent: list[float] = []
    for batch in range(12):
        values = [batch + place / 10 for place in range(5)]
        sent += values
        await live_run.send(records.make_points(run, "loss", [9 - batch % 3] * 5, values))
        if batch == 2:
            await compaction.compact_tail(world.database, run)
    pages = 0
    read = stored_points.read_series

    async def read_beside_the_compactor(*arguments: Any) -> AsyncIterator[Any]:
        nonlocal pages
        async for page in read(*arguments):
            pages += 1
            yield page
            await live_run.send(records.make_points(run, "loss", [99], [-1.0]))
            await compaction.compact_tail(world.database, run)
            await compaction.rewrite_blocks(world.database, run)

    monkeypatch.setattr(stored_points, "read_series", read_beside_the_compactor)
    rows = await read_rows(world, runs=[run], series=["loss"])
    assert [row["value"] for row in rows] == sent, "and nothing that arrived later"
    assert pages > 3
    monkeypatch.undo()
    assert len(await read_rows(world, runs=[run])) == len(sent) + pages


@pytest.mark.usefixtures("small_pages")
async def test_a_run_that_is_deleted_meanwhile_breaks_the_export(
    live_run: AttemptWithStore,
) -> None:
    world, run = live_run.world, live_run.run_id
    for step in range(6):
        await live_run.send(records.make_points(run, "loss", [step] * 5))
    found = await open_export(world, runs=[run])
    pieces = found.read()
    await anext(pieces)
    async with world.database.write() as session:
        await session.execute(delete(TailRow).where(TailRow.run_id == run))
    with pytest.raises(PointsMissingError):
        [piece async for piece in pieces]
    await found.close()


async def test_superseded_points_are_hidden_unless_they_are_asked_for(
    live_run: AttemptWithStore,
) -> None:
    world, run = live_run.world, live_run.run_id
    await live_run.send(records.make_points(run, "loss", [1, 5], [1.0, 5.0]))
    await live_run.write_snapshot(5)
    await live_run.send(
        records.make_points(run, "loss", [6, 7], [6.0, 7.0]), records.make_evaluation(run, 7, 1.0)
    )
    await live_run.resume(2)
    await live_run.send(records.make_points(run, "loss", [6], [6.5]))
    shown = await read_rows(world, runs=[run], series=["loss"])
    assert [row["value"] for row in shown] == [1.0, 5.0, 6.5]
    everything = await read_rows(world, runs=[run], series=["loss"], superseded=True)
    assert [(row["value"], row["fence"], row["superseded"]) for row in everything] == [
        (1.0, 1, False),
        (5.0, 1, False),
        (6.0, 1, True),
        (7.0, 1, True),
        (6.5, 2, False),
    ]
    assert await read_rows(world, kind="evaluations", runs=[run]) == []
    (evaluation,) = await read_rows(world, kind="evaluations", runs=[run], superseded=True)
    assert (evaluation["env_step"], evaluation["superseded"]) == (7, True)


async def test_episodes_have_a_row_each(live_run: AttemptWithStore) -> None:
    world, run = live_run.world, live_run.run_id
    for numbers in ([1, 2], [3], [4, 5, 6]):
        await live_run.send(records.make_episodes(run, numbers))
        if numbers == [3]:
            await compaction.compact_tail(world.database, run)
    rows = await read_rows(world, kind="episodes", runs=[run])
    assert [row["episode"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert rows[4] | {"run_id": ""} == {
        "run_id": "",
        "env_index": 0,
        "env_step": 50,
        "update": 0,
        "episode": 5,
        "wall": 1.0,
        "relative": 0.0,
        "episode_return": 5.0,
        "episode_length": 10,
        "terminated": True,
        "fence": 1,
        "superseded": False,
    }


def make_section(name: str, seqs: list[int]) -> stored_points.Section:
    seq = np.array(seqs, np.int64)
    values = np.arange(len(seqs), dtype=np.float64)
    columns = Columns(seq, seq, seq, seq, values, values)
    key = RecordKey(1, "att", seqs[0])
    return stored_points.Section(name, key, columns, np.zeros(len(seqs), np.bool_))


def test_returns_and_lengths_of_different_records_are_paired_by_their_records() -> None:
    sections = [
        make_section("episode/return", [1, 1, 2, 4]),
        make_section("episode/length", [1, 2, 2, 3, 4]),
    ]
    (found,) = record_rows._pair_episodes(sections)
    assert found.returns.seq.tolist() == found.lengths.seq.tolist() == [1, 2, 4]
    assert found.returns.value.tolist() == [0.0, 2.0, 3.0]
    assert found.lengths.value.tolist() == [0.0, 1.0, 4.0]
    assert len(found.superseded) == 3


@both_databases
async def test_evaluations_have_their_returns_and_metrics(live_run: AttemptWithStore) -> None:
    world, run = live_run.world, live_run.run_id
    first = records.make_evaluation(run, 10, 1.5) | {"returns": [1.0, "NaN", -0.0], "wall": 5.0}
    second = records.make_evaluation(run, 20, 2.5) | {
        "metrics": {"accuracy": 0.5, "loss": "Infinity"},
        "success_rate": 0.25,
        "wall": 7.5,
    }
    await live_run.send(first, second)
    rows = await read_rows(world, kind="evaluations", runs=[run])
    assert [(row["env_step"], row["mean"], row["relative"]) for row in rows] == [
        (10, 1.5, 0.0),
        (20, 2.5, 2.5),
    ]
    assert to_bits(rows[0]["returns"]) == to_bits([1.0, float("nan"), -0.0])
    assert rows[1]["metrics"] == [
        {"name": "accuracy", "value": 0.5},
        {"name": "loss", "value": float("inf")},
    ]
    columns = ["env_step", "success_rate", "returns", "metrics"]
    text = (await export(world, "csv", kind="evaluations", runs=[run], columns=columns)).decode()
    assert text.splitlines() == [
        "env_step,success_rate,returns,metrics",
        '10,,"[1.0,""NaN"",-0.0]","{}"',
        '20,0.25,"[2.5]","{""accuracy"":0.5,""loss"":""Infinity""}"',
    ]
    table = pq.read_table(
        io.BytesIO(await export(world, "parquet", kind="evaluations", runs=[run]))
    )
    assert table["metrics"].to_pylist()[1] == rows[1]["metrics"]


@pytest.mark.parametrize(
    ("x", "start", "end", "expected"),
    [
        ("env_step", 2, 3, [2, 3]),
        ("update", 30, None, [3, 4]),
        ("episode", None, 101, [1]),
        ("wall", 1_002.0, 1_003.0, [2, 3]),
        ("relative", 1.5, 2.5, [3]),
    ],
)
async def test_a_range_selects_rows_on_every_axis(
    live_run: AttemptWithStore, x: str, start: float | None, end: float | None, expected: list[int]
) -> None:
    run = live_run.run_id
    numbers = [1, 2, 3, 4]
    await live_run.send(
        records.make_points(run, "loss", numbers)
        | {
            "update": [10 * one for one in numbers],
            "episode": [100 + one for one in numbers],
            "wall": [1_000.0 + one for one in numbers],
        }
    )
    rows = await read_rows(live_run.world, runs=[run], x=x, start=start, end=end)
    assert [row["env_step"] for row in rows] == expected
    assert [row["relative"] for row in rows] == [float(one - 1) for one in expected]


async def test_an_experiment_is_exported_with_all_its_runs(world: World) -> None:
    registered = await world.register(slots=2)
    submitted, _ = await world.submit(seeds=(0, 1))
    runs = [
        await train(
            world,
            job,
            (registered.worker_id, slot),
            [
                records.make_points("", f"only/{slot}", [slot]),
                records.make_points("", "loss", [1, 2]),
            ],
        )
        for slot, job in enumerate(await world.list_jobs())
    ]
    experiment = submitted.id
    rows = await read_rows(world, experiments=[experiment])
    assert {(row["run_id"], row["series"], row["env_step"]) for row in rows} == {
        *((run, f"only/{slot}", slot) for slot, run in enumerate(runs)),
        *((run, "loss", step) for run in runs for step in (1, 2)),
    }
    assert len(rows) == 6
    one = await read_rows(world, experiments=[experiment], runs=[runs[1]], series=["loss"])
    assert [row["run_id"] for row in one] == [runs[1], runs[1], runs[0], runs[0]]


async def test_small_series_share_pages_and_large_ones_do_not(
    live_run: AttemptWithStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_points, "PAGE_POINTS", 4)
    world, run = live_run.world, live_run.run_id
    expected = []
    for name, count in (("a", 2), ("b", 2), ("c", 9), ("d", 1)):
        for step in range(count):
            await live_run.send(records.make_points(run, name, [step]))
        expected += [(name, step) for step in range(count)]
    await compaction.compact_tail(world.database, run)
    await live_run.send(records.make_points(run, "a", [7]))
    expected.insert(2, ("a", 7))
    for form in ("arrow", "parquet"):
        content = await export(world, form, runs=[run])
        table = (
            pa.ipc.open_stream(content).read_all()
            if form == "arrow"
            else pq.read_table(io.BytesIO(content))
        )
        names, steps = table["series"].to_pylist(), table["env_step"].to_pylist()
        assert list(zip(names, steps, strict=True)) == expected


class TestErrors:
    async def test_what_cannot_be_meant_is_refused(self, live_run: AttemptWithStore) -> None:
        world, run = live_run.world, live_run.run_id
        await live_run.send(records.make_points(run, "loss/td", [10, 20]))
        assert await read_rows(world, runs=[run], series=["entropy"]) == []
        assert await read_rows(world, runs=[run], start=21) == []
        await live_run.succeed()
        code, pointer, detail = await refuse(world, runs=[run], series=["loss/tdd"])
        assert (code, pointer) == ("unknown_series", "query/series")
        assert "did you mean loss/td?" in detail
        code, pointer, detail = await refuse(world, runs=[run], start=21)
        assert (code, pointer) == ("range_without_data", "query/start")
        assert "from 10 to 20 of env_step" in detail
        assert (await refuse(world, runs=[run], start=11, end=19))[0] == "range_without_data"
        assert (await refuse(world, runs=[run], start=2, end=1))[0] == "invalid_range"
        assert (await refuse(world))[:2] == ("empty_selection", "query/run")
        assert (await refuse(world, runs=[run], series=["evaluation/mean"]))[0] == (
            "computed_series"
        )
        code, pointer, detail = await refuse(world, runs=[run], columns=["valu"])
        assert (code, pointer) == ("unknown_column", "query/column")
        assert "did you mean value?" in detail
        assert (await refuse(world, runs=["run_" + "0" * 26]))[0] == "not_found"
        assert (await refuse(world, experiments=["nothing"]))[0] == "not_found"

    async def test_a_run_without_records_gives_a_file_with_columns_only(
        self, live_run: AttemptWithStore
    ) -> None:
        text = await export(live_run.world, "csv", runs=[live_run.run_id], columns=["value"])
        assert text == b"value\n"
        table = pq.read_table(
            io.BytesIO(await export(live_run.world, "parquet", runs=[live_run.run_id]))
        )
        assert (table.num_rows, "env_step" in table.column_names) == (0, True)

    async def test_a_user_runs_a_few_exports_at_once(self, live_run: AttemptWithStore) -> None:
        running = RunningExports()
        body: dict[str, Any] = {"runs": [live_run.run_id], "running": running}
        opened = [await open_export(live_run.world, **body) for _ in range(2)]
        assert (await refuse(live_run.world, **body))[0] == "too_many_exports"
        await opened[0].close()
        assert (await refuse(live_run.world, running=running))[0] == "empty_selection"
        third = await open_export(live_run.world, **body)
        for one in (*opened, third):
            await one.close()
        assert not running.users

    async def test_a_service_account_counts_as_the_person_who_made_it(
        self, live_run: AttemptWithStore
    ) -> None:
        world, running = live_run.world, RunningExports()
        account = replace(
            world.admin, user_id="usr_program", is_service_account=True, made_by=world.admin.user_id
        )
        opened = [
            await record_exports.export(
                world.database, caller, RecordQuery(runs=(live_run.run_id,)), "csv", running
            )
            for caller in (world.admin, account)
        ]
        with pytest.raises(TooManyRequestsError):
            await record_exports.export(
                world.database, account, RecordQuery(runs=(live_run.run_id,)), "csv", running
            )
        for one in opened:
            await one.close()


async def test_a_run_that_is_moved_before_its_turn_breaks_the_export(
    live_run: AttemptWithStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await live_run.send(records.make_points(live_run.run_id, "loss", [1]))
    select = record_exports._select

    async def select_then_move(*arguments: Any) -> Any:
        found = await select(*arguments)
        runs = {run_id: run._replace(project_id="other") for run_id, run in found.runs.items()}
        return replace(found, runs=runs)

    monkeypatch.setattr(record_exports, "_select", select_then_move)
    with pytest.raises(PointsMissingError, match="moved"):
        await export(live_run.world, runs=[live_run.run_id])
