"""A full disk of a worker ends an attempt with the cause `disk_full`, whichever write fails."""

import errno
import hashlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import SupervisorBench, make_work_order
from safetensors.torch import save_file
from scripted_server import ScriptedServer

from palestra.contract.states import Cause, Order, Outcome
from palestra.contract.work_order import SnapshotRef
from palestra.telemetry.spool import SpoolWriter
from tests.support.disks import fill, mount_small_disk
from workers.ipc.attempt_directory import AttemptDirectory
from workers.ipc.full_disk import EXIT_STATUS
from workers.supervisor.outcome import TrainerExit, report_of
from workers.supervisor.snapshot_download import InputError, fetch_snapshot
from workers.trainer_process import attempt
from workers.trainer_process.failures import describe_failure

BIG = np.zeros(400_000, np.float32)


def save_with_torch(directory: Path) -> None:
    torch.save({"w": torch.from_numpy(BIG)}, directory / "w.pt")


def save_with_safetensors(directory: Path) -> None:
    save_file({"w": torch.from_numpy(BIG)}, directory / "w.safetensors")


def save_with_numpy(directory: Path) -> None:
    np.save(directory / "w.npy", BIG)


def save_archive(directory: Path) -> None:
    np.savez(directory / "w.npz", BIG)


def write_rows(directory: Path) -> None:
    with sqlite3.connect(directory / "w.db") as database:
        database.execute("CREATE TABLE t (content BLOB)")
        database.execute("INSERT INTO t VALUES (?)", (BIG.tobytes(),))
        database.commit()


def spool(directory: Path) -> None:
    with SpoolWriter(directory / "spool") as writer:
        writer.append_raw([b"x" * 500_000])


@pytest.mark.parametrize(
    "write",
    [save_with_torch, save_with_safetensors, save_with_numpy, save_archive, write_rows, spool],
)
def test_the_full_disk_error_of_every_library_is_recognised(
    tmp_path: Path, write: Callable[[Path], None]
) -> None:
    """Regression: a SafetensorError with "os error 28" was reported as `user_exception`."""
    with mount_small_disk(tmp_path / "disk", 1_024) as disk:
        fill(disk, leave=100_000)
        with pytest.raises(Exception) as failed:
            write(disk)
        cause, failure = describe_failure(failed.value, disk)
    assert cause is Cause.DISK_FULL, f"{type(failed.value)}: {failed.value}"
    assert failure.message.startswith("The worker's disk is full")


def test_a_short_write_on_a_disk_with_space_is_another_error(tmp_path: Path) -> None:
    """torch does not report why a write failed, so the free space of the disk decides."""
    error = RuntimeError("[enforce fail at inline_container.cc:664] . unexpected pos 64 vs 0")
    assert describe_failure(error, tmp_path)[0] is Cause.USER_EXCEPTION
    with mount_small_disk(tmp_path / "disk", 1_024) as disk:
        fill(disk)
        assert describe_failure(error, disk)[0] is Cause.DISK_FULL


def test_a_full_disk_error_in_the_exception_chain_counts_unless_suppressed() -> None:
    """An agent may raise another exception while it handles the full disk."""

    def fail(*, hidden: bool) -> BaseException:
        try:
            try:
                Path("/dev/full").write_bytes(b"x")
            except OSError:
                if hidden:
                    raise RuntimeError("another matter") from None
                raise RuntimeError("the agent could not save")  # noqa: B904 - as user code does
        except RuntimeError as error:
            return error

    assert describe_failure(fail(hidden=False))[0] is Cause.DISK_FULL
    assert describe_failure(fail(hidden=True))[0] is Cause.USER_EXCEPTION


@pytest.mark.parametrize("leave", [0, 60_000])
def test_a_full_disk_is_reported_even_if_the_report_cannot_be_written(
    tmp_path: Path, leave: int
) -> None:
    """Regression: the outcome was `no_result`, since the report could not be written."""
    with mount_small_disk(tmp_path / "disk", 2_048) as disk:
        order = make_work_order(resources={"cpu_threads": 1})
        directory = AttemptDirectory(disk / "attempts" / order.attempt_id)
        directory.create(order.model_dump_json().encode())
        fill(disk, leave=leave)
        status = attempt.main(["--attempt-dir", str(directory.root)])
        if directory.report.exists():
            assert '"cause": "disk_full"' in directory.report.read_text()
        else:
            assert status == EXIT_STATUS
            assert (
                report_of(TrainerExit(exit_status=status, report=None, order=Order.CONTINUE)).cause
                is Cause.DISK_FULL
            )


def test_a_trainer_that_crashes_on_a_full_disk_ends_as_disk_full() -> None:
    """The cause is `disk_full` although the trainer wrote no report."""
    for status in (1, 120, -7):
        ended = report_of(
            TrainerExit(exit_status=status, report=None, order=Order.CONTINUE, is_disk_full=True)
        )
        assert (ended.outcome, ended.cause) == (Outcome.FAILED, Cause.DISK_FULL)
    assert (
        report_of(
            TrainerExit(exit_status=-9, report=None, order=Order.CONTINUE, is_disk_full=True)
        ).cause
        is Cause.TRAINER_KILLED
    )
    assert (
        report_of(TrainerExit(exit_status=1, report=None, order=Order.CONTINUE)).cause
        is Cause.NO_RESULT
    )


def test_a_full_disk_while_inputs_are_stored_ends_as_disk_full(tmp_path: Path) -> None:
    """Regression: only errors during the download itself were recognised."""

    class FullDiskApi:
        def download(self, *_: object) -> None:
            raise OSError(errno.EDQUOT, "Disk quota exceeded")

    file = {"name": "a/b", "size": 1, "sha256": "0" * 64, "artifact_id": "art_1"}
    at = {
        "snapshot_id": "snp_" + "0" * 26,
        "env_step": 0,
        "update": 0,
        "episode": 0,
        "resume_exact": True,
    }
    snapshot = SnapshotRef.model_validate({**at, "files": [file]}, strict=False)
    with pytest.raises(InputError) as caught:
        fetch_snapshot(FullDiskApi(), tmp_path / "inputs", snapshot, lambda: False)  # type: ignore[arg-type]
    assert caught.value.cause is Cause.DISK_FULL


@pytest.mark.processes
def test_a_full_disk_before_the_trainer_has_started_is_a_failed_start(
    tmp_path: Path, server: ScriptedServer
) -> None:
    """Regression: the job failed with `disk_full`, although it had written nothing."""
    with mount_small_disk(tmp_path / "disk", 4_096) as disk:
        supervised = SupervisorBench(disk, server, "train:5")
        fill(disk, leave=200_000)
        supervised.start()
        report = supervised.wait_for_end()
    assert (report["outcome"], report["cause"]) == ("failed", "not_started")
    assert "its disk is full" in report["failure"]["message"]


@pytest.mark.processes
def test_a_disk_without_room_for_the_snapshot_is_a_failed_start(
    tmp_path: Path, server: ScriptedServer
) -> None:
    content = bytes(3_000_000)
    file = {
        "name": "w.bin",
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "artifact_id": "art_" + "7" * 26,
    }
    server.blobs[file["artifact_id"]] = content
    at = {"env_step": 1, "update": 1, "episode": 0, "resume_exact": True}
    snapshot = {"snapshot_id": "snp_" + "7" * 26, "files": [file], **at}
    run = {"run_id": "run_" + "1" * 26, "seed": 1, "fence": 2, "snapshot": snapshot}
    with mount_small_disk(tmp_path / "disk", 4_096) as disk:
        supervised = SupervisorBench(disk, server, "train:5", runs=[run])
        fill(disk, leave=2_000_000)
        supervised.start()
        report = supervised.wait_for_end()
    assert (report["outcome"], report["cause"]) == ("failed", "not_started")
    assert "no room for the snapshot" in report["failure"]["message"]
