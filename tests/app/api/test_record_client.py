"""Points, frames and files of records through `palestra.Client` and the command."""

import asyncio
import json
import math
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
import pytest_asyncio

from app.services.curves import stored_points
from app.services.telemetry import batches
from palestra import record_frames
from palestra.client import Client
from palestra.contract.record_exports import Point, RecordQuery
from palestra.errors import InvalidRequestError, LibraryMissingError, UnreachableError
from tests.app.api.serving import AppServer
from tests.app.api.test_project_commands import Command, palestra, url
from tests.support.listening import listening
from tests.support.records import make_delivery, make_points, make_stats

__all__ = ["palestra", "url"]

pytestmark = pytest.mark.asyncio(loop_scope="module")
SPECIAL = [1.5, math.nan, math.inf, -math.inf, -0.0, 5e-324, 2.0**53 - 1]
WRITTEN: list[Any] = [1.5, "NaN", "Infinity", "-Infinity", -0.0, 5e-324, 2.0**53 - 1]


def to_bits(values: Any) -> list[bytes]:
    return [struct.pack("<d", value) for value in values]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client(shared: AppServer) -> AsyncIterator[Client]:
    run, attempt = shared.names["live_run"], shared.names["live_attempt"]
    acked = {one.id: one.acked_seq for one in (await shared.world.run(run)).attempts}
    async with shared.database.write() as session:
        content = [make_points(run, "loss/td", range(1, 8), WRITTEN), make_stats(run, 64)]
        await batches.take(session, make_delivery(attempt, acked[attempt] + 1, content))
    async with listening(shared.app) as address:
        with Client(address, shared.tokens["user"]) as made:
            yield made


async def test_points_are_yielded_with_every_bit(client: Client, shared: AppServer) -> None:
    run = shared.names["live_run"]
    points = await asyncio.to_thread(lambda: list(client.points(run, "loss/td")))
    assert to_bits(point.value for point in points) == to_bits(SPECIAL)
    expected = Point(run, "loss/td", 1, 0, 0, 1.0, 0.0, 1.5, points[0].fence, superseded=False)
    assert points[0] == expected
    query = RecordQuery(runs=(run,), series=("loss/td",), start=3, end=4)
    ranged = await asyncio.to_thread(lambda: [one.env_step for one in client.points(query)])
    assert ranged == [3, 4]
    with pytest.raises(ValueError, match="in the query"):
        next(client.points(query, "loss/td"))


@pytest.mark.parametrize("has_pyarrow", [True, False])
async def test_frames_of_both_libraries_hold_every_bit(
    client: Client, shared: AppServer, monkeypatch: pytest.MonkeyPatch, has_pyarrow: bool
) -> None:
    run = shared.names["live_run"]
    if not has_pyarrow:
        monkeypatch.setattr(record_frames, "_is_installed", lambda name: name != "pyarrow")
    frame = await asyncio.to_thread(client.frame, run, "loss/td")
    assert isinstance(frame, pd.DataFrame)
    assert to_bits(frame["value"]) == to_bits(SPECIAL)
    assert frame["env_step"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert frame["series"].astype(str).unique().tolist() == ["loss/td"]
    other = await asyncio.to_thread(lambda: client.frame(run, "loss/td", library="polars"))
    assert isinstance(other, pl.DataFrame)
    assert to_bits(other["value"]) == to_bits(SPECIAL)
    assert other.columns == frame.columns.tolist()
    evaluations = await asyncio.to_thread(lambda: client.frame(run, kind="evaluations"))
    assert len(evaluations) == 0
    assert "success_rate" in evaluations.columns
    epochs = await asyncio.to_thread(lambda: client.frame(run, kind="epochs"))
    assert epochs["env_step"].tolist() == [64]
    assert list(epochs.columns[:3]) == ["run_id", "total_epoch", "total_itr"]


async def test_a_missing_library_is_named(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_frames, "_is_installed", lambda name: name == "polars")
    assert record_frames.choose_library(None) == "polars"
    with pytest.raises(LibraryMissingError, match="pandas is not installed: run `pip install"):
        client.frame("run_x", library="pandas")
    monkeypatch.setattr(record_frames, "_is_installed", lambda _: False)
    with pytest.raises(LibraryMissingError, match="pandas and polars are not installed"):
        client.frame("run_x")


async def test_what_the_server_refuses_is_raised(client: Client, shared: AppServer) -> None:
    query = RecordQuery(runs=(shared.names["live_run"],), columns=("valu",))
    with pytest.raises(InvalidRequestError, match="did you mean value"):
        await asyncio.to_thread(lambda: list(client.export_records(query)))


async def test_a_file_that_breaks_off_is_not_taken_for_a_whole_one(
    client: Client, shared: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_points, "PAGE_POINTS", 1)
    monkeypatch.setattr("app.services.curves.record_exports._PIECE_ROWS", {"csv": 1})
    pages = stored_points.read_series

    async def break_off(*arguments: Any) -> AsyncIterator[Any]:
        async for page in pages(*arguments):
            yield page
            if page:
                raise stored_points.PointsMissingError("deleted")

    monkeypatch.setattr(stored_points, "read_series", break_off)
    run = shared.names["live_run"]
    with pytest.raises(UnreachableError):
        await asyncio.to_thread(lambda: list(client.points(run, "loss/td")))
    assert not shared.app.state.running_exports.users


async def test_the_command_writes_files(
    client: Client, palestra: Command, shared: AppServer, tmp_path: Path
) -> None:
    run = shared.names["live_run"]
    file = tmp_path / "points.parquet"
    code, out, err = await palestra(
        "export-records", run, "--series", "loss/td", "--file", str(file), "--json"
    )
    assert (code, err) == (0, "")
    assert json.loads(out) == {"bytes": file.stat().st_size, "path": str(file)}
    assert to_bits(pq.read_table(file)["value"].to_pylist()) == to_bits(SPECIAL)
    code, out, _ = await palestra(
        "export-records", run, "--series", "loss/td", "--column", "value", "--end", "2"
    )
    assert (code, out) == (0, "value\n1.5\nNaN\n")
    code, _, err = await palestra("export-records", run, "--file", str(file))
    assert (code, "does not exist yet" in err) == (2, True)
    missing = tmp_path / "missing.csv"
    code, _, err = await palestra("export-records", "no-experiment", "--file", str(missing))
    assert (code, missing.exists()) == (1, False)
    code, _, err = await palestra("export-records", run, "--kind", "nothing")
    assert (code, "--kind" in err) == (2, True)
    code, _, err = await palestra("export-records", run, "--format", "xlsx")
    assert (code, "csv, parquet, arrow" in err) == (2, True)
