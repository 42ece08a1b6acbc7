"""A recorder of this version and a server that does not know records of the type `table`.

The server is the previous version, taken from the history and run as a process.
"""

from pathlib import Path

import pytest

from palestra.contract.telemetry import RunRecord, Table
from palestra.contract.work_order import ClaimAnswer
from palestra.telemetry.shipper import Shipper
from palestra.telemetry.spool import SpoolReader, SpoolWriter
from palestra.telemetry.transport import HttpTransport, open_client
from tests.app.services.telemetry_training import Training
from tests.support.previous_version import fill_database, write_previous_version
from tests.support.process_stack import Stack
from workers.recording.points_sink import PointsSink

STORED_SEQ = 3
"""Last record of the previous version's live attempt."""


def make_table(run_id: str) -> list[RunRecord]:
    """Returns a table with two points of two series."""
    series = {"loss/td": (0.5, 0.25), "q/mean": (1.0, float("nan"))}
    axes = {"env_step": (10, 20), "update": (1, 2), "episode": (0, 0), "wall": (1.0, 2.0)}
    return [Table(run=run_id, **axes, series=series)]


@pytest.mark.processes
@pytest.mark.extended
def test_an_older_server_gets_points_and_a_table_waits_for_its_upgrade(tmp_path: Path) -> None:
    tree = write_previous_version(tmp_path / "tree", "tests")
    data = tmp_path / "data"
    data.mkdir()
    url = f"sqlite:///{data / 'palestra.db'}"
    facts = fill_database(tree, url, tmp_path / "filled", 1)
    attempt, run = facts["names"]["live_attempt"], facts["names"]["live_run"]
    stack = Stack(data, database_url=url, settings={"PALESTRA_DAEMONS": "false"})
    stack.trees["server"] = tree
    try:
        stack.start_server()
        with open_client(stack.url, facts["tokens"]["live_attempt"]) as client:
            reports: list[str] = []
            with SpoolWriter(tmp_path / "spool") as spool:
                spool.append_raw([b"{}"] * STORED_SEQ)
                divided = PointsSink(spool).append(make_table(run))
                spool.append(make_table(run))
            reader = SpoolReader(tmp_path / "spool", STORED_SEQ)
            shipper = Shipper(reader, HttpTransport(client, attempt), report=reports.append)
            while shipper.ship_once() or not shipper.pause:
                pass
            assert divided == STORED_SEQ + 2
            assert shipper.acked_seq == divided, reports
            assert shipper.counts.refused == 0
            assert "older than this recorder" in reports[-1]
    finally:
        stack.__exit__()


async def test_this_server_tells_workers_that_it_takes_tables(training: Training) -> None:
    job = await training.world.submit_one_job(seeds=[99])
    claimed = await training.world.claim(job.id, training.worker_id, slot=1)
    assert claimed.takes_tables
    sent = claimed.model_dump(mode="json")
    del sent["takes_tables"]
    assert not ClaimAnswer.model_validate(sent, strict=False).takes_tables


async def test_this_server_tells_workers_that_it_takes_open_lines(training: Training) -> None:
    job = await training.world.submit_one_job(seeds=[98])
    claimed = await training.world.claim(job.id, training.worker_id, slot=1)
    assert claimed.takes_open_lines
    sent = claimed.model_dump(mode="json")
    del sent["takes_open_lines"]
    assert not ClaimAnswer.model_validate(sent, strict=False).takes_open_lines
