"""Real supervisors with real trainer processes and a scripted server."""

import hashlib
import json
import os
import signal
from pathlib import Path

import pytest
from conftest import TOKEN, SupervisorBench
from scripted_server import make_problem

from palestra.telemetry.spool import read_spooled_seq
from tests.support.waiting import wait_for

pytestmark = pytest.mark.processes


def test_an_attempt_ships_telemetry_uploads_results_and_releases(start_supervisor, server):
    supervised = start_supervisor("train:120")
    report = supervised.wait_for_end()
    assert (report["outcome"], report["cause"], report["env_step"]) == ("succeeded", "budget", 120)
    assert server.list_steps() == list(range(1, 121))
    assert (
        server.releases[0]["last_seq"]
        == len(server.records)
        == read_spooled_seq(supervised.directory.spool)
    )
    assert {"hello from the trainer", "step 20", "step 120"} <= set(server.list_log_lines())
    snapshots = [record["snapshot_id"] for record in server.records if record["type"] == "snapshot"]
    assert len(snapshots) == 3
    uploaded = [artifact for artifact in server.artifacts.values() if artifact["stored"]]
    assert sorted(
        artifact["snapshot_id"] for artifact in uploaded if artifact["kind"] == "snapshot"
    ) == sorted(snapshots)
    assert uploaded[-1]["kind"] == "export"
    videos = {
        (artifact["name"], artifact["env_step"])
        for artifact in uploaded
        if artifact["kind"] == "video"
    }
    assert videos == {
        (f"{at:012d}-episode-0.{ending}", at) for at in (50, 100) for ending in ("mp4", "jpg")
    }
    assert len(uploaded) == 3 + 4 + 1
    assert server.renewals[-1]["trainer_pid"]
    assert server.tokens == {f"Bearer {TOKEN}"}


def test_the_trainer_gets_no_credential(start_supervisor, monkeypatch):
    # torch sets the variable if a test of this process has compiled.
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    supervised = start_supervisor(
        "train:10", resources={"gpus": 1, "cpu_threads": 3, "simulator": "registered"}
    )
    supervised.wait_for_end()
    environ = json.loads((supervised.directory.root / "environ.json").read_text())
    assert not any("secret" in value or TOKEN in value for value in environ.values())
    assert (environ["CUDA_VISIBLE_DEVICES"], environ["OMP_NUM_THREADS"]) == ("0", "3")
    assert environ["PALESTRA_TRAINER_SIMULATOR"] == "registered"
    assert environ["TORCHINDUCTOR_CACHE_DIR"] == str(
        supervised.directory.root.parents[1] / "compiled"
    )
    for path in supervised.directory.root.rglob("*"):
        assert path.is_dir() or TOKEN.encode() not in path.read_bytes(), path


def test_a_job_without_gpus_sees_none(start_supervisor):
    supervised = start_supervisor("train:5")
    supervised.wait_for_end()
    assert (
        json.loads((supervised.directory.root / "environ.json").read_text())["CUDA_VISIBLE_DEVICES"]
        == ""
    )


def test_the_log_has_the_begin_and_the_end_of_an_attempt(start_supervisor, server):
    """Regression: the log had neither, and no traceback."""
    start_supervisor("raise").wait_for_end()
    lines = server.list_log_lines()
    assert " begins on " in lines[0]
    end = next(
        index
        for index, line in enumerate(lines)
        if line.startswith("failed (user_exception) at env_step 3, ")
    )
    assert lines[end].endswith(": ValueError: could not convert string to float: 'a robot'")
    assert lines[end + 1] == "Traceback (most recent call last):"
    assert lines[-1] == "ValueError: could not convert string to float: 'a robot'"


def test_the_log_has_the_cause_of_a_killed_trainer(start_supervisor, server):
    """Regression: the log of a killed trainer ended without the cause."""
    start_supervisor("segfault").wait_for_end()
    assert server.list_log_lines()[-1].startswith(
        "failed (trainer_killed) at env_step 0, update 0, episode 0: The trainer was killed by "
        "SIGSEGV."
    )


@pytest.mark.parametrize(
    ("order", "outcome"), [("pause", "paused"), ("cancel", "cancelled"), ("drain", "drained")]
)
def test_orders_reach_the_trainer_which_saves_a_snapshot(start_supervisor, server, order, outcome):
    supervised = start_supervisor()
    supervised.wait_for_step(10)
    server.order = order
    report = supervised.wait_for_end()
    assert report["outcome"] == outcome
    snapshots = [record for record in server.records if record["type"] == "snapshot"]
    assert snapshots[-1]["reason"] == "stop"
    assert f"asked to {order}" in server.list_log_lines()
    assert any(
        artifact["snapshot_id"] == snapshots[-1]["snapshot_id"] and artifact["stored"]
        for artifact in server.artifacts.values()
    )


def test_sigterm_drains(start_supervisor, server):
    supervised = start_supervisor()
    supervised.wait_for_step(5)
    supervised.send_signal(signal.SIGTERM)
    assert supervised.wait_for_end()["outcome"] == "drained"


def test_a_trainer_that_ignores_orders_is_killed_after_the_grace_period(start_supervisor, server):
    supervised = start_supervisor("deaf", limits={"grace_seconds": 1})
    supervised.wait_for_step(5)
    server.order = "cancel"
    report = supervised.wait_for_end()
    assert (report["outcome"], report["cause"]) == ("cancelled", "user")
    assert server.list_steps() == list(range(1, len(server.list_steps()) + 1))


def test_everything_that_the_trainer_started_ends_with_it(start_supervisor, server):
    supervised = start_supervisor("children")
    supervised.wait_for_step(5)
    assert len(supervised.list_processes()) == 4
    server.order = "pause"
    assert supervised.wait_for_end()["outcome"] == "paused"


def test_all_processes_end_with_a_killed_supervisor(start_supervisor):
    supervised = start_supervisor("children")
    supervised.wait_for_step(5)
    assert len(supervised.list_processes()) == 4
    supervised.send_signal(signal.SIGKILL)
    wait_for(lambda: not supervised.list_processes(), "nothing is left")
    wait_for(supervised.is_slot_free, "the slot is free")
    assert not supervised.directory.released.exists()


def test_a_killed_trainer_is_reported_as_killed(start_supervisor, server):
    supervised = start_supervisor()
    supervised.wait_for_step(5)
    trainer = supervised.directory.trainer()
    assert trainer is not None
    trainer.send(signal.SIGKILL)
    report = supervised.wait_for_end()
    assert (report["outcome"], report["cause"]) == ("failed", "trainer_killed")
    assert "SIGKILL" in report["failure"]["message"]
    assert report["env_step"] >= 5


def test_a_crash_is_reported_with_its_signal_and_logged_with_its_stack(start_supervisor, server):
    supervised = start_supervisor("segfault")
    report = supervised.wait_for_end()
    assert report["cause"] == "trainer_killed"
    assert "SIGSEGV" in report["failure"]["message"]
    assert any("Segmentation fault" in line for line in server.list_log_lines())


def test_an_exit_without_a_report_is_reported_with_the_last_output_line(start_supervisor):
    report = start_supervisor("exit:3").wait_for_end()
    assert (report["outcome"], report["cause"]) == ("failed", "no_result")
    assert "exit status 3" in report["failure"]["message"]
    assert "about to leave" in report["failure"]["message"]


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("missing_library", "No module named 'a_library_that_is_not_installed'"),
        ("broken_library", "SIGSEGV while it imported its modules"),
    ],
)
def test_a_trainer_that_ends_while_it_imports_its_modules_did_not_start(
    start_supervisor, mode, reason
):
    """Regression: the job failed with `no_result`, or its trainer's death counted as poison."""
    report = start_supervisor(mode).wait_for_end()
    assert (report["outcome"], report["cause"]) == ("failed", "not_started")
    assert report["failure"]["message"].startswith("The worker could not start the trainer: ")
    assert reason in report["failure"]["message"]


def test_a_supervisor_that_cannot_start_a_trainer_reports_it(tmp_path, server):
    """Regression: it ended without a report, and the attempt counted as lost with its worker."""
    supervised = SupervisorBench(tmp_path, server, "train")
    supervised.directory.trainer_log.mkdir()
    supervised.start()
    report = supervised.wait_for_end()
    assert (report["outcome"], report["cause"]) == ("failed", "not_started")
    assert "IsADirectoryError" in report["failure"]["message"]


def test_the_wall_time_ends_with_a_snapshot(start_supervisor, server):
    supervised = start_supervisor("train", limits={"wall_seconds": 1, "grace_seconds": 5})
    report = supervised.wait_for_end()
    assert (report["outcome"], report["cause"]) == ("failed", "time_limit")
    assert [record["reason"] for record in server.records if record["type"] == "snapshot"][
        -1
    ] == "stop"


def test_a_hanging_environment_is_ended_with_its_stacks(start_supervisor, server):
    supervised = start_supervisor("hang", limits={"stall_seconds": 10})
    report = supervised.wait_for_end()
    assert (report["outcome"], report["cause"]) == ("failed", "stalled")
    assert any("fake_trainer.py" in line and "in main" in line for line in server.list_log_lines())


def test_too_much_memory_ends_the_attempt(start_supervisor):
    report = start_supervisor("memory", resources={"memory_mib": 200}).wait_for_end()
    assert (report["outcome"], report["cause"]) == ("failed", "host_out_of_memory")
    assert "200 MiB" in report["failure"]["message"]


@pytest.mark.parametrize("where", ["renew", "telemetry"])
def test_a_stale_attempt_ends_without_a_release(start_supervisor, server, where):
    supervised = start_supervisor("children")
    supervised.wait_for_step(5)
    server.fault = lambda _method, path: (
        make_problem(409, "stale_attempt") if where in path else None
    )
    wait_for(supervised.is_gone, "the supervisor ends")
    assert not supervised.list_processes()
    assert server.releases == []
    assert not supervised.directory.released.exists()


def test_an_unreachable_server_neither_stops_the_training_nor_loses_records(
    start_supervisor, server
):
    supervised = start_supervisor("train:250")
    supervised.wait_for_step(30)
    server.stop()
    wait_for(supervised.directory.report.exists, "the trainer ends without the server")
    free_at_release = []

    def look_at_slot(_method, path):
        if "release" in path:
            free_at_release.append(supervised.is_slot_free())

    server.fault = look_at_slot
    server.start()
    report = supervised.wait_for_end()
    assert free_at_release == [False], "the slot is taken until the server knows"
    assert report["outcome"] == "succeeded"
    assert server.list_steps() == list(range(1, 251))
    assert (
        len(
            [
                artifact
                for artifact in server.artifacts.values()
                if artifact["stored"] and artifact["kind"] == "snapshot"
            ]
        )
        == 6
    )


def test_records_that_a_server_lost_are_sent_again_before_the_release(start_supervisor, server):
    supervised = start_supervisor("train:60")
    lost = []

    def forget_once(_method, path):
        if "release" in path and not lost:
            lost.append(server.records.pop())

    server.fault = forget_once
    report = supervised.wait_for_end()
    assert report["outcome"] == "succeeded"
    assert lost
    assert server.list_steps() == list(range(1, 61))


def test_the_snapshot_to_resume_from_is_there_before_the_trainer(start_supervisor, server):
    content = b"weights"
    file = {
        "name": "w.bin",
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "artifact_id": "art_" + "7" * 26,
    }
    server.blobs[file["artifact_id"]] = content
    snapshot = {
        "snapshot_id": "snp_" + "5" * 26,
        "env_step": 1,
        "update": 1,
        "episode": 0,
        "resume_exact": True,
        "files": [file],
    }
    reads = []

    def answer_after_two_faults(_method, path):
        if path.startswith("/artifacts/"):
            reads.append(path)
            return (502, {}) if len(reads) == 1 else (200, b"damaged") if len(reads) == 2 else None
        return None

    server.fault = answer_after_two_faults
    run = {"run_id": "run_" + "1" * 26, "seed": 1, "fence": 2, "snapshot": snapshot}
    supervised = start_supervisor("train:5", runs=[run])
    assert supervised.wait_for_end()["outcome"] == "succeeded"
    assert json.loads((supervised.directory.root / "inputs.json").read_text()) == {
        f"{snapshot['snapshot_id']}/w.bin": "weights"
    }
    assert len(reads) == 3


def test_a_deleted_resume_snapshot_fails_the_attempt_with_a_reason(start_supervisor, server):
    file = {"name": "w.bin", "size": 1, "sha256": "0" * 64, "artifact_id": "art_" + "7" * 26}
    snapshot = {
        "snapshot_id": "snp_" + "5" * 26,
        "env_step": 1,
        "update": 1,
        "episode": 0,
        "resume_exact": True,
        "files": [file],
    }
    server.fault = lambda _method, path: (
        make_problem(404, "not_found") if path.startswith("/artifacts/") else None
    )
    report = start_supervisor(
        "train:5", runs=[{"run_id": "run_" + "1" * 26, "seed": 1, "fence": 2, "snapshot": snapshot}]
    ).wait_for_end()
    assert report["outcome"] == "failed"
    assert snapshot["snapshot_id"] in report["failure"]["message"]


def test_a_refused_upload_fails_the_run_with_a_note(start_supervisor, server):
    """Regression: the run was shown as succeeded and its only copies were deleted."""
    server.fault = lambda method, path: (
        make_problem(413, "quota_exceeded")
        if path.endswith("/artifacts") and method == "POST"
        else None
    )
    supervised = start_supervisor("train:60")
    report = supervised.wait_for_end()
    assert (report["outcome"], report["cause"]) == ("failed", "no_result")
    assert "quota_exceeded" in report["failure"]["message"]
    kept = {path.name for path in supervised.directory.kept.rglob("*") if path.is_file()}
    assert {"weights.bin", "weights.safetensors"} <= kept
    notes = [record for record in server.records if record["type"] == "note"]
    assert notes
    assert {note["code"] for note in notes} == {"upload_refused"}
    assert server.releases[0]["last_seq"] == len(server.records)


def test_resource_samples_reach_the_server(start_supervisor, server):
    supervised = start_supervisor("train")
    wait_for(lambda: any(record["type"] == "system" for record in server.records), "a sample")
    server.order = "cancel"
    supervised.wait_for_end()
    values = next(record["values"] for record in server.records if record["type"] == "system")
    assert values["processes"] >= 1
    assert 5 < values["memory_mib"] < 2_000
    assert 0 <= values["host_memory_percent"] <= 100


def test_the_command_line_holds_no_secret(start_supervisor, server):
    supervised = start_supervisor()
    identity = supervised.directory.supervisor()
    assert identity is not None
    for name in ("cmdline", "environ"):
        assert TOKEN.encode() not in Path(f"/proc/{identity.pid}/{name}").read_bytes()
    assert os.getsid(identity.pid) not in {os.getsid(0), 0}
