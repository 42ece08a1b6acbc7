import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.replay_streams import FrameStream, VectorStream
from workers.core.errors import SnapshotUnreadableError
from workers.core.rng import derive_generator
from workers.memory.frames import FrameReplay
from workers.memory.replay import Replay
from workers.memory.rules import Prioritized
from workers.memory.segments import Segment, SegmentStore
from workers.memory.streams import Stream
from workers.memory.transitions import ReplaySpec


class Ring:
    """Numbers and pairs in a ring of some room."""

    def __init__(self, room: int) -> None:
        self.columns = {"number": np.zeros(room, np.int64), "pair": np.zeros((room, 2), np.float32)}
        self.room, self.end = room, 0

    def extend(self, count: int) -> None:
        for number in range(self.end, self.end + count):
            self.columns["number"][number % self.room] = number
            self.columns["pair"][number % self.room] = number, -number
        self.end += count

    @property
    def stream(self) -> Stream:
        return Stream(self.columns, self.end)


def append(store: SegmentStore, known: tuple[Segment, ...], ring: Ring) -> tuple[Segment, ...]:
    stream = ring.stream
    return store.append(known, stream.first, stream.end, stream.read)


def assert_holds(store: SegmentStore, segments: tuple[Segment, ...], ring: Ring) -> None:
    loaded = store.load(segments, ring.end, ring.room)
    assert all(np.array_equal(loaded[name], column) for name, column in ring.stream.by_place().items())


@given(room=st.integers(1, 20), most=st.integers(1, 8), counts=st.lists(st.integers(0, 30), min_size=1, max_size=6))
@settings(deadline=None, max_examples=10)
def test_every_manifest_gives_back_the_ring_as_it_was(tmp_path_factory, room, most, counts) -> None:
    store, ring, known = SegmentStore(tmp_path_factory.mktemp("rows"), most_rows=most), Ring(room), ()
    for count in counts:
        ring.extend(count)
        known = append(store, known, ring)
        assert all(segment.count <= most for segment in known)
        if ring.end:
            assert_holds(store, known, ring)
        store.prune([known])
        assert {path.name for path in store._directory.iterdir()} == {segment.name for segment in known}


def test_only_what_is_new_is_written_and_what_is_overwritten_is_left_out(tmp_path) -> None:
    store, ring = SegmentStore(tmp_path), Ring(10)
    asked = []

    def read(begin, end):
        asked.append((begin, end))
        return ring.stream.read(begin, end)

    ring.extend(8)
    first = store.append((), 0, 8, read)
    ring.extend(1)
    second = store.append(first, 0, 9, read)
    again = store.append(second, 0, 9, read)
    ring.extend(11)
    third = store.append(again, 10, 20, read)
    assert asked == [(0, 8), (8, 9), (10, 20)]
    assert second == again == (*first, second[-1])
    assert [segment.first for segment in third] == [10]
    assert store.prune([third]) == tuple(sorted(segment.name for segment in second))


def test_a_segment_stays_while_any_manifest_names_it(tmp_path) -> None:
    store, ring = SegmentStore(tmp_path), Ring(4)
    ring.extend(4)
    old = append(store, (), ring)
    ring.extend(9)
    new = append(store, old, ring)
    assert store.prune([old, new]) == ()
    assert store.load(old, 4, 4)["number"].tolist() == [0, 1, 2, 3]
    assert len(store.prune([new])) == 1


def test_two_histories_from_one_snapshot_do_not_meet_in_one_file(tmp_path) -> None:
    store, ring, other = SegmentStore(tmp_path), Ring(10), Ring(10)
    for one in (ring, other):
        one.extend(4)
    shared = append(store, (), ring)
    for one in (ring, other):
        one.extend(3)
    other.columns["pair"][5] = 77
    first, second = append(store, shared, ring), append(store, shared, other)
    assert first[0] == second[0]
    assert first[1].name != second[1].name
    assert_holds(store, first, ring)
    assert_holds(store, second, other)
    with pytest.raises(ValueError, match="segments of this history"):
        store.append(first, 0, 5, ring.stream.read)


class CrashError(BaseException):
    """Ends a writer as a kill would."""


@pytest.mark.parametrize("step", ["savez", "fsync", "rename", "after rename"])
def test_a_crash_at_any_point_leaves_the_last_manifest_whole(tmp_path, monkeypatch, step) -> None:
    store, ring = SegmentStore(tmp_path, most_rows=3), Ring(20)
    ring.extend(5)
    manifest = append(store, (), ring)
    kept = Ring(20)
    kept.extend(5)
    ring.extend(7)

    def crash(*_, **__):
        raise CrashError

    def write_half(file, **_):
        file.write(b"PK half of it")
        crash()

    rename = Path.rename
    broken = {
        "savez": (np, "savez", write_half),
        "fsync": (os, "fsync", crash),
        "rename": (Path, "rename", crash),
        "after rename": (Path, "rename", lambda path, target: (rename(path, target), crash())),
    }
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", lambda *_, **__: None)  # a killed process tidies nothing up
        patch.setattr(*broken[step])
        with pytest.raises(CrashError):
            append(store, manifest, ring)
    assert len(list(tmp_path.iterdir())) == len(manifest) + 1
    assert_holds(store, manifest, kept)
    after = append(SegmentStore(tmp_path, most_rows=3), manifest, ring)
    assert_holds(store, after, ring)
    store.prune([after])
    assert {path.name for path in tmp_path.iterdir()} == {segment.name for segment in after}


def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch) -> None:
    store, ring = SegmentStore(tmp_path), Ring(20)
    ring.extend(5)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space"):
        append(store, (), ring)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("harm", ["cut", "flip", "grow", "gone", "other"])
def test_torn_and_foreign_segments_are_refused(tmp_path, harm) -> None:
    store, ring = SegmentStore(tmp_path, most_rows=4), Ring(20)
    ring.extend(10)
    segments = append(store, (), ring)
    path = tmp_path / segments[1].name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    harmed = {"cut": content[:-9], "flip": content, "grow": path.read_bytes() + b"x", "other": (tmp_path / segments[0].name).read_bytes()}
    if harm == "gone":
        path.unlink()
    else:
        path.write_bytes(harmed[harm])
    with pytest.raises(SnapshotUnreadableError, match=path.name):
        store.load(segments, 10, 20)
    assert store.load(segments[2:], 10, 2)["number"].tolist() == [8, 9]


def test_missing_and_repeated_rows_are_refused(tmp_path) -> None:
    store, ring = SegmentStore(tmp_path, most_rows=4), Ring(20)
    ring.extend(12)
    one, two, three = append(store, (), ring)
    for wrong in [(one, three), (two, three), (one, two), (one, one, two, three), ()]:
        with pytest.raises(SnapshotUnreadableError, match="segments lack"):
            store.load(wrong, 12, 20)
    other = Ring(20)
    other.columns["pair"] = np.zeros((20, 3))
    other.end = 16
    foreign = store.append((), 12, 16, other.stream.read)
    with pytest.raises(SnapshotUnreadableError, match="other fields"):
        store.load((one, two, three, *foreign), 16, 20)


def test_a_manifest_travels_as_json_and_cannot_name_files_elsewhere(tmp_path) -> None:
    store, ring = SegmentStore(tmp_path), Ring(4)
    ring.extend(4)
    (segment,) = append(store, (), ring)
    document = json.loads(json.dumps(segment.to_dict()))
    assert Segment.from_dict(document) == segment
    for wrong in ({"name": "../rows.npz"}, {"name": "rows.txt"}, {"count": 0}, {"first": -1}, {"more": 1}, {"first": None}):
        with pytest.raises(SnapshotUnreadableError):
            Segment.from_dict({**document, **wrong})


def test_a_stream_says_which_rows_it_has() -> None:
    ring = Ring(4)
    ring.extend(6)
    assert ring.stream.read(3, 6)["number"].tolist() == [3, 4, 5]
    with pytest.raises(ValueError, match="2 to 6 are there"):
        ring.stream.read(1, 3)


@pytest.mark.parametrize("kind", ["vectors", "frames"])
def test_a_memory_from_segments_goes_on_like_one_from_its_state(tmp_path, kind) -> None:
    observation = ((3,), np.float32) if kind == "vectors" else ((3, 2, 3), np.uint8)
    spec = ReplaySpec(capacity=400, num_envs=2, observation=observation, action=((), np.int64), n_step=3)
    stream = VectorStream(0, 2) if kind == "vectors" else FrameStream(0, 2, 3, end=0.5)

    def memory(seed: int) -> Replay:
        rule = Prioritized(derive_generator(seed, "memory"))
        return Replay(spec, rule) if kind == "vectors" else FrameReplay(spec, rule, spare=0.0)

    memories, known = [memory(0)], {}
    store = {name: SegmentStore(tmp_path / name, most_rows=100) for name in memories[0].streams()}
    for _ in range(8):
        memories[0].extend(*stream.chunk(40).columns)
        for name, part in memories[0].streams().items():
            known[name] = store[name].append(known.get(name, ()), part.first, part.end, part.read)
        restored = {name: store[name].load(known[name], part.end, part.room) for name, part in memories[0].streams().items()}
        memories[1:] = [memory(1), memory(2)]
        memories[1].load_state_dict({**memories[0].summary(), **restored})
        memories[2].load_state_dict(memories[0].state_dict())
        assert len({len(one) for one in memories}) == 1
        samples = [one.sample(2, 16) for one in memories]
        for columns in zip(*samples, strict=True):
            assert all(np.array_equal(column, columns[0]) for column in columns)
    assert (len(memories[0]) < 400) == (kind == "frames")  # short episodes cost the oldest rows their frames
