"""Snapshots are complete or absent, and verified; snapshots of other runs are refused."""

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from palestra.contract.names import new_id
from palestra.contract.telemetry import SnapshotWritten
from workers.core.errors import SnapshotUnreadableError
from workers.core.types import PartFiles, PartFilesDirectory, SnapshotReason
from workers.snapshot import attempt_store as store_module
from workers.snapshot import snapshot_directory as writing_module
from workers.snapshot.attempt_store import SnapshotStore, load_snapshot
from workers.snapshot.manifest import FORMAT_VERSION, MANIFEST, Manifest, verify
from workers.snapshot.snapshot_directory import (
    Moment,
    SnapshotOwner,
    read_snapshot,
    repair_snapshots,
    write_snapshot,
)
from workers.snapshot.state_files import read_tree, write_tree

RUN = new_id("run")
HASH = "0" * 64
PERIODIC = SnapshotReason.PERIODIC
CLOCK: Any = SimpleNamespace(
    env_steps=10, updates=4, iterations=9, epochs=0, episodes=2, wall_seconds=1.0
)


def make_owner(run_id: str = RUN, definition_hash: str = HASH) -> SnapshotOwner:
    return SnapshotOwner(
        run_id=run_id,
        attempt_id=new_id("att"),
        experiment_id="x-1",
        definition_hash=definition_hash,
        seed=1,
        parent=None,
        versions={"palestra": "0.1.0"},
        device="cpu",
        resume_exact=True,
    )


def make_store(
    directory: Path, written: list[SnapshotWritten] | None = None, **options: Any
) -> SnapshotStore:
    return SnapshotStore(
        directory,
        options.pop("owner", make_owner()),
        announce=(written if written is not None else []).append,
        **options,
    )


def make_state(value: float = 1.0) -> dict[str, Any]:
    shared = torch.arange(6.0).reshape(2, 3)
    return {
        "agent": {
            "weights": shared,
            "view": shared[0],
            "step": value,
            "names": ["a", "b"],
            "nothing": None,
            "flag": True,
        },
        "memory": {
            "rows": {"obs": np.arange(6, dtype=np.uint8).reshape(2, 3)},
            "empty": np.zeros((0, 2)),
        },
        "loop": {
            "best": float("-inf"),
            "rate": float("nan"),
            "count": np.int64(3),
            "exact": 0.1 + 0.2,
        },
    }


@pytest.fixture
def snapshot_directory(tmp_path: Path) -> Path:
    return tmp_path / make_store(tmp_path).save(make_state(), CLOCK, SnapshotReason.PERIODIC, None)


def test_a_state_tree_is_restored(tmp_path: Path) -> None:
    write_tree(tmp_path, make_state())
    back = read_tree(tmp_path)
    assert torch.equal(back["agent"]["weights"], make_state()["agent"]["weights"])
    assert torch.equal(back["agent"]["view"], torch.arange(3.0))
    assert back["agent"]["names"] == ["a", "b"]
    assert (back["agent"]["nothing"], back["agent"]["flag"]) == (None, True)
    assert back["memory"]["rows"]["obs"].dtype == np.uint8
    assert back["memory"]["empty"].shape == (0, 2)
    assert back["loop"]["best"] == float("-inf")
    assert np.isnan(back["loop"]["rate"])
    assert (back["loop"]["count"], back["loop"]["exact"]) == (3, 0.1 + 0.2)


@pytest.mark.parametrize(
    "leaf",
    [object(), np.array([object()]), {1: 2}, {"$tensor": 1}, 1j],
    ids=["object", "object array", "key", "mark", "complex"],
)
def test_values_that_a_snapshot_cannot_hold_are_refused_and_leave_no_file(
    tmp_path: Path, leaf: Any
) -> None:
    with pytest.raises(TypeError):
        make_store(tmp_path).save({"agent": {"leaf": leaf}}, CLOCK, SnapshotReason.PERIODIC, None)
    assert list(tmp_path.iterdir()) == []


def test_a_snapshot_announces_every_file_with_its_hash(tmp_path: Path) -> None:
    written: list[SnapshotWritten] = []
    made = make_store(tmp_path, written)
    snapshot_id = made.save(make_state(), CLOCK, SnapshotReason.BEST, 3.5)
    record = written[0]
    assert (record.snapshot_id, record.score, record.reason, record.env_step, record.update) == (
        snapshot_id,
        3.5,
        "best",
        10,
        4,
    )
    assert {file.name for file in record.files} == {
        path.name for path in (tmp_path / snapshot_id).iterdir()
    }
    assert MANIFEST in {file.name for file in record.files}
    loaded = load_snapshot(tmp_path / snapshot_id, run_id=RUN, definition_hash=HASH)
    assert loaded.state["agent"]["step"] == 1.0


def test_no_file_is_a_pickle(snapshot_directory: Path) -> None:
    for path in snapshot_directory.iterdir():
        assert b"pickle" not in path.read_bytes()
        assert path.suffix in {".safetensors", ".npz", ".json"}


@pytest.mark.parametrize("name", ["agent.safetensors", "memory.npz", "state.json"])
def test_changed_bytes_are_detected(snapshot_directory: Path, name: str) -> None:
    data = bytearray((snapshot_directory / name).read_bytes())
    data[len(data) // 2] ^= 1
    (snapshot_directory / name).write_bytes(data)
    with pytest.raises(SnapshotUnreadableError, match="SHA-256"):
        verify(snapshot_directory)


def test_a_torn_file_a_missing_one_and_an_unknown_one_are_found(
    snapshot_directory: Path, tmp_path: Path
) -> None:
    for break_it, text in (
        (lambda at: os.truncate(at / "memory.npz", 10), "size or SHA-256"),
        (lambda at: (at / "memory.npz").unlink(), "missing"),
        (lambda at: (at / "more.npz").write_bytes(b""), "unknown"),
        (lambda at: (at / "memory.npz").rename(at / "other.npz"), "missing"),
        (lambda at: (at / MANIFEST).unlink(), "never finished"),
        (lambda at: (at / MANIFEST).write_text("{"), "cannot be read"),
        (lambda at: (at / MANIFEST).write_text("{}"), "no snapshot of Palestra"),
    ):
        copy = tmp_path / "copy"
        shutil.copytree(snapshot_directory, copy)
        break_it(copy)
        with pytest.raises(SnapshotUnreadableError, match=text):
            verify(copy)
        shutil.rmtree(copy)


def test_links_are_refused(snapshot_directory: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.npz"
    (snapshot_directory / "memory.npz").rename(elsewhere)
    (snapshot_directory / "memory.npz").symlink_to(elsewhere)
    with pytest.raises(SnapshotUnreadableError, match="not a plain file"):
        verify(snapshot_directory)
    link = tmp_path / "link"
    link.symlink_to(snapshot_directory, target_is_directory=True)
    with pytest.raises(SnapshotUnreadableError, match="not a directory"):
        verify(link)


@pytest.mark.parametrize(
    ("version", "remedy"), [(FORMAT_VERSION + 1, "upgrade"), (FORMAT_VERSION - 1, "use it with")]
)
def test_another_format_names_its_version_and_the_remedy(
    snapshot_directory: Path, version: int, remedy: str
) -> None:
    document = json.loads((snapshot_directory / MANIFEST).read_text())
    document.update(format_version=version, versions={"palestra": "2.3"}, something_new=True)
    (snapshot_directory / MANIFEST).write_text(json.dumps(document))
    with pytest.raises(
        SnapshotUnreadableError,
        match=rf"Palestra 2\.3 in format {version}, .* reads format {FORMAT_VERSION}: {remedy}",
    ):
        verify(snapshot_directory)


def test_a_snapshot_of_another_run_is_refused(snapshot_directory: Path, tmp_path: Path) -> None:
    with pytest.raises(SnapshotUnreadableError, match="belongs to"):
        load_snapshot(snapshot_directory, run_id=new_id("run"), definition_hash=HASH)
    with pytest.raises(SnapshotUnreadableError, match="another definition"):
        load_snapshot(snapshot_directory, run_id=RUN, definition_hash="1" * 64)
    with pytest.raises(SnapshotUnreadableError, match="the manifest is that of"):
        load_snapshot(
            snapshot_directory.rename(tmp_path / new_id("snp")), run_id=RUN, definition_hash=HASH
        )


def test_two_attempts_may_write_to_one_directory(tmp_path: Path) -> None:
    first, second = make_store(tmp_path), make_store(tmp_path)
    ids = [
        made.save(make_state(float(index)), CLOCK, SnapshotReason.PERIODIC, None)
        for index, made in enumerate((first, second) * 2)
    ]
    assert [
        load_snapshot(tmp_path / one, run_id=RUN, definition_hash=HASH).state["agent"]["step"]
        for one in ids
    ] == [0.0, 1.0, 2.0, 3.0]


def test_the_last_ones_and_the_best_are_kept(tmp_path: Path) -> None:
    made = make_store(tmp_path, keep_last=2)
    ids = [
        made.save(make_state(), CLOCK, SnapshotReason.PERIODIC, score)
        for score in (1.0, 9.0, None, 2.0, None)
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([ids[1], *ids[-2:]])


def test_the_final_one_takes_the_place_of_that_before_the_final_evaluation(
    tmp_path: Path,
) -> None:
    made = make_store(tmp_path, keep_last=2)
    ids = [
        made.save(make_state(), CLOCK, reason, None)
        for reason in (*(SnapshotReason.PERIODIC,) * 3, SnapshotReason.FINISH)
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([ids[1], ids[3]])


def test_nothing_is_deleted_while_the_newest_cannot_be_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_unreadable(*_: Any) -> Manifest:
        raise SnapshotUnreadableError("torn")

    made = make_store(tmp_path)
    monkeypatch.setattr(store_module, "verify", raise_unreadable)
    ids = [made.save(make_state(), CLOCK, SnapshotReason.PERIODIC, None) for _ in range(4)]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(ids)


def test_a_full_disk_keeps_older_snapshots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_store(tmp_path)
    kept = made.save(make_state(), CLOCK, SnapshotReason.PERIODIC, None)
    usage = SimpleNamespace(free=10)
    monkeypatch.setattr(writing_module.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(OSError, match="MiB are free"):
        made.save(make_state(), CLOCK, SnapshotReason.PERIODIC, None)
    monkeypatch.undo()

    def raise_disk_full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing_module, "write_tree", raise_disk_full)
    with pytest.raises(OSError, match="No space"):
        made.save(make_state(), CLOCK, SnapshotReason.PERIODIC, None)
    assert [path.name for path in tmp_path.iterdir()] == [kept]
    verify(tmp_path / kept)


@pytest.mark.parametrize("moment", ["write_tree", "sync_file", "describe_file"])
def test_a_kill_at_any_moment_leaves_a_snapshot_or_none(tmp_path: Path, moment: str) -> None:
    """Ends a real process, as SIGKILL would, at every call of one step of writing."""
    survivors = []
    for count in range(1, 12):
        directory = tmp_path / str(count)
        pid = os.fork()
        if pid == 0:
            try:
                _exit_at_call(moment, count)
                made = make_store(directory)
                made.save(make_state(), CLOCK, SnapshotReason.PERIODIC, None)
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        for path in directory.iterdir():
            if not path.name.endswith(".tmp"):
                verify(path)
                survivors.append(count)
    assert survivors


def _exit_at_call(moment: str, count: int) -> None:
    original, calls = getattr(writing_module, moment), []

    def exit_or_call(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == count:
            os._exit(9)
        return original(*arguments)

    setattr(writing_module, moment, exit_or_call)


def test_an_agents_own_files_are_stored_and_restored_as_a_directory(
    tmp_path: Path,
) -> None:
    def save(directory: str) -> None:
        (Path(directory) / "target").mkdir()
        (Path(directory) / "model.pt").write_bytes(b"weights")
        (Path(directory) / "target" / "model.pt").write_bytes(b"older weights")

    target = tmp_path / "best"
    for loss in (1.0, 2.0):
        manifest = write_snapshot(
            target,
            make_owner(),
            {"agent": {"own": PartFiles(save), "loss": loss}},
            Moment(clock=CLOCK, reason=PERIODIC),
        )
    assert {file.name for file in manifest.files} == {"model.pt", "target/model.pt", "state.json"}
    assert read_snapshot(target).state == {
        "agent": {"own": PartFilesDirectory(str(target)), "loss": 2.0}
    }
    assert [path.name for path in tmp_path.iterdir()] == ["best"]
    (target / "target" / "model.pt").write_bytes(b"other weights")
    with pytest.raises(SnapshotUnreadableError, match=r"target/model\.pt"):
        read_snapshot(target)


@pytest.mark.parametrize("name", ["state.json", "a file", "a/b/c/d/e"])
def test_reserved_or_invalid_file_names_of_agents_are_refused(tmp_path: Path, name: str) -> None:
    def save(directory: str) -> None:
        path = Path(directory, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")

    with pytest.raises(TypeError, match=name):
        write_snapshot(
            tmp_path / "best",
            make_owner(),
            {"agent": {"own": PartFiles(save)}},
            Moment(clock=CLOCK, reason=PERIODIC),
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kills", range(1, 9))
def test_a_kill_while_a_snapshot_is_replaced_leaves_one_of_the_two(
    tmp_path: Path, kills: int
) -> None:
    target = tmp_path / "params"
    write_snapshot(target, make_owner(), make_state(1.0), Moment(clock=CLOCK, reason=PERIODIC))
    pid = os.fork()
    if pid == 0:
        calls = []

        def make_dying_method(name: str) -> Any:
            original = getattr(Path, name)

            def call(*arguments: Any) -> Any:
                calls.append(name)
                if len(calls) == kills:
                    os._exit(9)
                return original(*arguments)

            return call

        try:
            for name in ("rename", "mkdir", "write_text"):
                setattr(Path, name, make_dying_method(name))
            write_snapshot(
                target, make_owner(), make_state(2.0), Moment(clock=CLOCK, reason=PERIODIC)
            )
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    repair_snapshots(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["params"]
    assert read_snapshot(target).state["agent"]["step"] in {1.0, 2.0}
