"""Rows of streams in files that several snapshots share."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palestra.contract.states import SnapshotReason
from tests.support.replay_streams import FrameStream, VectorStream
from tests.unit.workers.snapshot.test_snapshots import CLOCK, make_owner
from workers.core.errors import SnapshotUnreadableError
from workers.core.rng import derive_generator
from workers.core.row_stream import RowStream
from workers.rl.memory.frame_replay import FrameReplay
from workers.rl.memory.replay import Replay
from workers.rl.memory.sampling_rules import PrioritizedRule
from workers.rl.memory.transitions import ReplaySpec
from workers.snapshot import manifest, row_segments
from workers.snapshot.attempt_store import SnapshotStore
from workers.snapshot.row_segments import read_stream, write_stream
from workers.snapshot.snapshot_directory import read_snapshot

ROW_BYTES = 16


class Ring:
    """A ring buffer of numbers and pairs."""

    def __init__(self, room: int) -> None:
        self.columns = {"number": np.zeros(room, np.int64), "pair": np.zeros((room, 2), np.float32)}
        self.room, self.end = room, 0

    def extend(self, count: int) -> None:
        for number in range(self.end, self.end + count):
            self.columns["number"][number % self.room] = number
            self.columns["pair"][number % self.room] = number, -number
        self.end += count

    @property
    def stream(self) -> RowStream:
        return RowStream(self.columns, self.end)


@pytest.fixture
def segments_of_four_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_segments, "SEGMENT_BYTES", 4 * ROW_BYTES)


def write_ring(directory: Path, ring: Ring, before: Path | None = None) -> dict[str, Any]:
    directory.mkdir()
    return write_stream(directory, "memory.0", ring.stream, before)


def assert_holds(directory: Path, document: dict[str, Any], ring: Ring) -> None:
    loaded = read_stream(directory, document)
    assert loaded.keys() == ring.columns.keys()
    for name, column in loaded.items():
        assert np.array_equal(column, ring.stream[name])
        assert column.dtype == ring.columns[name].dtype


@given(
    room=st.integers(1, 20),
    most=st.integers(1, 8),
    counts=st.lists(st.integers(0, 30), min_size=1, max_size=6),
)
@settings(max_examples=20)
def test_every_snapshot_restores_the_ring(tmp_path_factory, room, most, counts) -> None:
    root, ring, before = tmp_path_factory.mktemp("rows"), Ring(room), None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_segments, "SEGMENT_BYTES", most * ROW_BYTES)
        for index, count in enumerate(counts):
            ring.extend(count)
            document = write_ring(root / str(index), ring, before)
            before = root / str(index)
            assert {path.name for path in before.iterdir()} == set(document["files"])
            assert_holds(before, document, ring)


@pytest.mark.usefixtures("segments_of_four_rows")
def test_full_segments_are_linked_and_only_new_rows_are_written(tmp_path: Path) -> None:
    ring = Ring(10)
    ring.extend(6)
    first = write_ring(tmp_path / "1", ring)
    ring.extend(1)
    second = write_ring(tmp_path / "2", ring, tmp_path / "1")
    again = write_ring(tmp_path / "3", ring, tmp_path / "2")
    ring.extend(6)
    third = write_ring(tmp_path / "4", ring, tmp_path / "3")
    assert [name.split(".")[2] for name in first["files"]] == [
        "000000000000-000000000004",
        "000000000004-000000000006",
    ]
    assert second == again
    numbers = [
        tuple(int(part) for part in name.split(".")[2].split("-")) for name in third["files"]
    ]
    assert numbers == [(0, 4), (4, 8), (8, 12), (12, 13)], (
        "the oldest file holds rows that the ring has no more"
    )
    links = {name: (tmp_path / "4" / name).stat().st_nlink for name in third["files"]}
    assert list(links.values()) == [4, 1, 1, 1]
    assert (tmp_path / "3" / second["files"][1]).stat().st_nlink == 2
    for name in ("1", "2", "3"):
        (tmp_path / name / first["files"][0]).unlink()
    assert_holds(tmp_path / "4", third, ring)


@pytest.mark.usefixtures("segments_of_four_rows")
def test_without_links_or_an_earlier_snapshot_all_rows_are_written(
    tmp_path: Path, monkeypatch
) -> None:
    ring = Ring(10)
    ring.extend(9)
    write_ring(tmp_path / "1", ring)
    gone = write_ring(tmp_path / "2", ring, tmp_path / "nowhere")

    def raise_not_permitted(*_: Any) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", raise_not_permitted)
    copied = write_ring(tmp_path / "3", ring, tmp_path / "1")
    for name, document in (("2", gone), ("3", copied)):
        assert {path.stat().st_nlink for path in (tmp_path / name).iterdir()} == {1}
        assert_holds(tmp_path / name, document, ring)


def test_an_empty_stream_keeps_its_fields(tmp_path: Path) -> None:
    ring = Ring(3)
    assert_holds(tmp_path / "1", write_ring(tmp_path / "1", ring), ring)


@pytest.mark.usefixtures("segments_of_four_rows")
def test_missing_or_changed_rows_are_refused(tmp_path: Path) -> None:
    ring = Ring(20)
    ring.extend(12)
    document = write_ring(tmp_path / "1", ring)
    one, two, three = document["files"]
    for files in ([one, three], [two, three], [one, two], [one, one, two, three], []):
        with pytest.raises(SnapshotUnreadableError, match="missing"):
            read_stream(tmp_path / "1", {**document, "files": files})
    for name in ("../rows.0-4.npz", "memory.0.npz", "memory.0.a-b.npz", "memory", 7):
        with pytest.raises(SnapshotUnreadableError, match="names no"):
            read_stream(tmp_path / "1", {**document, "files": [name]})
    other = Ring(20)
    other.columns["pair"] = np.zeros((20, 2), np.int32)
    other.end = 16
    (foreign,) = write_ring(tmp_path / "2", other)["files"][-1:]
    (tmp_path / "2" / foreign).rename(tmp_path / "1" / foreign)
    with pytest.raises(SnapshotUnreadableError, match="other fields"):
        read_stream(tmp_path / "1", {"end": 16, "room": 20, "files": [one, two, three, foreign]})
    (tmp_path / "1" / two).write_bytes((tmp_path / "1" / one).read_bytes()[:-9])
    with pytest.raises(SnapshotUnreadableError, match="cannot be read"):
        read_stream(tmp_path / "1", document)
    (tmp_path / "1" / two).write_bytes((tmp_path / "1" / foreign).read_bytes())
    (tmp_path / "1" / two).rename(tmp_path / "1" / "memory.0.000000000004-000000000009.npz")
    with pytest.raises(SnapshotUnreadableError, match="does not hold the rows"):
        read_stream(
            tmp_path / "1", {**document, "files": [one, "memory.0.000000000004-000000000009.npz"]}
        )


def test_a_stream_has_the_range_of_its_rows() -> None:
    ring = Ring(4)
    ring.extend(6)
    assert ring.stream.read(3, 6)["number"].tolist() == [3, 4, 5]
    assert ring.stream["number"].tolist() == [4, 5, 2, 3]
    with pytest.raises(ValueError, match="2 to 6 are stored"):
        ring.stream.read(1, 3)


@pytest.mark.usefixtures("segments_of_four_rows")
def test_snapshots_share_rows_and_each_is_complete_by_itself(tmp_path: Path, monkeypatch) -> None:
    ring, kept, hashed = Ring(30), [], []
    describe = manifest.describe_file
    monkeypatch.setattr(
        manifest,
        "describe_file",
        lambda path, root: hashed.append(path.name) or describe(path, root),
    )
    store = SnapshotStore(tmp_path, make_owner(), keep_last=2, announce=kept.append)
    for _ in range(5):
        ring.extend(6)
        hashed.clear()
        store.save(
            {"memory": {"rows": ring.stream}, "loop": {"end": ring.end}},
            CLOCK,
            SnapshotReason.PERIODIC,
            None,
        )
    assert [len(one.files) for one in kept] == [4, 5, 7, 8, 10]
    assert store._last_size < 4 * ROW_BYTES + sum(file.size for file in kept[-1].files) / 2
    full = {file.name for file in kept[-2].files if file.name.endswith("-000000000016.npz")}
    assert full
    assert full.isdisjoint(hashed), (
        "what was read back as a file of the snapshot before is not read again"
    )
    assert sum(name.endswith(".npz") for name in hashed) > 0
    last = tmp_path / kept[-1].snapshot_id
    state = read_snapshot(last).state
    assert np.array_equal(state["memory"]["rows"]["number"], np.arange(30))
    assert len({path.name for path in tmp_path.iterdir()}) == 2
    harmed = last / next(iter(full))
    harmed.write_bytes(harmed.read_bytes()[:-1] + b"x")
    with pytest.raises(SnapshotUnreadableError, match="SHA-256"):
        read_snapshot(last)


@pytest.mark.parametrize("kind", ["vectors", "frames", "frames whose room grows"])
def test_a_memory_restored_from_files_equals_one_restored_from_its_state(
    tmp_path, kind, monkeypatch
) -> None:
    observation = ((3,), np.float32) if kind == "vectors" else ((3, 2, 3), np.uint8)
    spec = ReplaySpec(
        capacity=400, num_envs=2, observation=observation, action=((), np.int64), n_step=3
    )
    stream = VectorStream(0, 2) if kind == "vectors" else FrameStream(0, 2, 3, end=0.5)
    monkeypatch.setattr(row_segments, "SEGMENT_BYTES", 5_000)

    def make_memory(seed: int) -> Replay:
        rule = PrioritizedRule(derive_generator(seed, "memory"))
        return (
            Replay(spec, rule)
            if kind == "vectors"
            else FrameReplay(spec, rule, spare=0.0, may_grow=kind != "frames")
        )

    memories, kept = [make_memory(0)], []
    store = SnapshotStore(tmp_path, make_owner(), announce=kept.append)
    for _ in range(8):
        memories[0].extend(*stream.draw_chunk(40).columns)
        store.save({"memory": memories[0].state_dict()}, CLOCK, SnapshotReason.PERIODIC, None)
        memories[1:] = [make_memory(1), make_memory(2)]
        memories[1].load_state_dict(read_snapshot(tmp_path / kept[-1].snapshot_id).state["memory"])
        memories[2].load_state_dict(memories[0].state_dict())
        assert len({len(one) for one in memories}) == 1
        samples = [one.sample(2, 16) for one in memories]
        for columns in zip(*samples, strict=True):
            assert all(np.array_equal(column, columns[0]) for column in columns)
    # With short episodes the frames of the oldest rows are dropped.
    assert (len(memories[0]) < 400) == (kind == "frames")
    assert max(path.stat().st_nlink for path in (tmp_path / kept[-1].snapshot_id).iterdir()) > 1
