import errno
import json
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palestra.contract.telemetry import Episodes, Evaluation, LogLines, Points
from palestra.telemetry.framing import HEADER, MAX_PAYLOAD_BYTES
from palestra.telemetry.spool import SpoolDamagedError, SpoolReader, SpoolWriter, read_spooled_seq

RUN = "run_" + "0" * 26


def make_numbers(first: int, last: int) -> list[bytes]:
    return [str(value).encode() for value in range(first, last + 1)]


def read_all(directory: Path, after_seq: int = 0) -> list[int]:
    values: list[int] = []
    with SpoolReader(directory, after_seq) as reader:
        while (batch := reader.read(max_records=7)).payloads:
            assert batch.first_seq == after_seq + len(values) + 1
            values += [int(payload) for payload in batch.payloads]
            assert batch.last_seq == reader.position
    return values


def test_sequence_numbers_count_records_from_1(spool_directory: Path):
    with SpoolWriter(spool_directory) as writer:
        assert writer.last_seq() == 0
        assert writer.append_raw(make_numbers(1, 3)) == 3
        assert writer.append_raw([b"4"]) == 4
    assert read_all(spool_directory) == [1, 2, 3, 4]
    assert read_spooled_seq(spool_directory) == 4


def test_records_keep_every_value(spool_directory: Path, make_point):
    records = [
        make_point(1, float("nan")),
        make_point(2, float("-inf")),
        make_point(3, -0.0),
        make_point(4, 5e-324),
    ]
    with SpoolWriter(spool_directory) as writer:
        writer.append(records)
    payloads = SpoolReader(spool_directory).read().payloads
    assert [str(Points.model_validate_json(payload).value[0]) for payload in payloads] == [
        "nan",
        "-inf",
        "-0.0",
        "5e-324",
    ]


def test_a_reader_resumes_after_any_seq_over_segments(spool_directory: Path):
    with SpoolWriter(spool_directory, segment_bytes=64) as writer:
        for value in range(1, 41):
            writer.append_raw([str(value).encode()])
    assert len(list(spool_directory.glob("*.seg"))) > 4
    for after in range(42):
        assert read_all(spool_directory, after) == list(range(after + 1, 41))


def test_a_reader_follows_seeks_and_waits(spool_directory: Path):
    reader = SpoolReader(spool_directory)
    assert reader.read().payloads == ()
    writer = SpoolWriter(spool_directory, segment_bytes=50)
    writer.append_raw(make_numbers(1, 3))
    assert reader.read().payloads == (b"1", b"2", b"3")
    assert reader.read().payloads == ()
    writer.append_raw(make_numbers(4, 30))
    writer.append_raw(make_numbers(31, 32))
    assert reader.read(max_records=2).payloads == (b"4", b"5")
    reader.seek(1)
    assert reader.read(max_records=2).payloads == (b"2", b"3")
    reader.seek(31)
    assert reader.read().payloads == (b"32",)
    reader.seek(40)
    assert reader.read().payloads == ()
    writer.append_raw(make_numbers(33, 41))
    assert reader.read().payloads == (b"41",)


def test_a_batch_is_bounded_by_bytes_but_never_empty(spool_directory: Path):
    writer = SpoolWriter(spool_directory)
    writer.append_raw([b"x" * 600_000, b"y" * 600_000, b"z"])
    reader = SpoolReader(spool_directory)
    assert [len(payload) for payload in reader.read(max_bytes=10).payloads] == [600_000]
    assert [len(payload) for payload in reader.read().payloads] == [600_000, 1]


@pytest.mark.parametrize("cut", range(1, 12))
def test_an_incomplete_last_record_is_removed_by_the_next_writer(spool_directory: Path, cut: int):
    with SpoolWriter(spool_directory) as writer:
        writer.append_raw([b"one", b"two", b"gone"])
    segment = next(spool_directory.glob("*.seg"))
    os.truncate(segment, segment.stat().st_size - cut)
    assert SpoolReader(spool_directory).read().payloads == (b"one", b"two")
    with SpoolWriter(spool_directory) as writer:
        assert writer.append_raw([b"three"]) == 3
    assert SpoolReader(spool_directory).read().payloads == (b"one", b"two", b"three")


def test_a_second_writer_removes_the_tail_that_a_live_writer_sees(spool_directory: Path):
    living = SpoolWriter(spool_directory)
    living.append_raw([b"one"])
    segment = next(spool_directory.glob("*.seg"))
    with segment.open("ab") as file:
        file.write(HEADER.pack(100, 7) + b"torn")
    assert living.append_raw([b"two"]) == 2
    assert SpoolReader(spool_directory).read().payloads == (b"one", b"two")


def test_zeros_at_the_end_are_an_incomplete_record(spool_directory: Path):
    with SpoolWriter(spool_directory) as writer:
        writer.append_raw([b"one"])
    with next(spool_directory.glob("*.seg")).open("ab") as file:
        file.write(bytes(4096))
    with SpoolWriter(spool_directory) as writer:
        assert writer.append_raw([b"two"]) == 2
    assert SpoolReader(spool_directory).read().payloads == (b"one", b"two")


def test_damage_in_the_middle_is_refused_and_not_removed(spool_directory: Path):
    with SpoolWriter(spool_directory) as writer:
        writer.append_raw([b"one", b"two", b"three"])
    segment = next(spool_directory.glob("*.seg"))
    data = bytearray(segment.read_bytes())
    data[HEADER.size + 3 + HEADER.size] ^= 1
    segment.write_bytes(data)
    with pytest.raises(SpoolDamagedError, match="damaged"):
        SpoolWriter(spool_directory).last_seq()
    reader = SpoolReader(spool_directory)
    assert reader.read(max_records=1).payloads == (b"one",)
    with pytest.raises(SpoolDamagedError, match="record 2"):
        reader.read()
    assert segment.stat().st_size == len(data)


def test_an_append_on_a_full_disk_writes_no_record(
    spool_directory: Path, monkeypatch: pytest.MonkeyPatch
):
    writer = SpoolWriter(spool_directory)
    writer.append_raw([b"one"])
    real = os.write
    monkeypatch.setattr(
        os, "write", lambda descriptor, data: real(descriptor, data[: len(data) // 2])
    )
    with pytest.raises(OSError, match="fitted on the disk") as caught:
        writer.append_raw([b"lost", b"too"])
    assert caught.value.errno == errno.ENOSPC
    monkeypatch.undo()
    assert writer.append_raw([b"two"]) == 2
    assert SpoolReader(spool_directory).read().payloads == (b"one", b"two")


@pytest.mark.parametrize("payload", [b"", b"x" * (MAX_PAYLOAD_BYTES + 1)])
def test_impossible_records_are_refused(spool_directory: Path, payload: bytes):
    writer = SpoolWriter(spool_directory)
    with pytest.raises(ValueError, match="bytes"):
        writer.append_raw([b"fine", payload])
    assert writer.last_seq() == 0


def test_long_columns_become_several_records(spool_directory: Path):
    n = 60_000
    wall = tuple(1_700_000_000.123 + i / 7 for i in range(n))
    steps = tuple(range(10**9, 10**9 + n))
    long_points = Points(
        run=RUN,
        series="loss/td",
        env_step=steps,
        update=steps,
        episode=steps,
        wall=wall,
        value=wall,
    )
    long_episodes = Episodes(
        run=RUN,
        env_index=steps,
        env_step=steps,
        update=steps,
        episode=steps,
        wall=wall,
        episode_return=wall,
        episode_length=steps,
        terminated=(True,) * n,
    )
    lines = LogLines(
        run=RUN,
        stream="stdout",
        wall=1.0,
        lines=tuple("x" * 32_768 for _ in range(100)),
        open_lines=("50%",),
        truncated=5,
    )
    with SpoolWriter(spool_directory) as writer:
        last = writer.append([long_points, long_episodes, lines])
    payloads: list[bytes] = []
    reader = SpoolReader(spool_directory)
    while batch := reader.read().payloads:
        payloads += batch
    assert last == len(payloads) > 10
    documents = [json.loads(payload) for payload in payloads]
    for kind, column, expected in (
        ("points", "value", wall),
        ("episodes", "episode_return", wall),
        ("log", "lines", lines.lines),
    ):
        assert (
            tuple(
                item
                for document in documents
                if document["type"] == kind
                for item in document[column]
            )
            == expected
        )
    logs = [document for document in documents if document["type"] == "log"]
    assert sum(document["truncated"] for document in logs) == 5
    assert [document.get("open_lines") for document in logs[-2:]] == [None, ["50%"]]


def test_an_evaluation_too_large_says_what_it_left_out(spool_directory: Path):
    returns = tuple(i / 7 for i in range(99_999))
    numbers_ = dict.fromkeys(
        (
            "mean",
            "median",
            "stdev",
            "min",
            "max",
            "length_mean",
            "length_median",
            "length_stdev",
            "length_min",
            "length_max",
        ),
        1.0,
    )
    record = Evaluation(
        run=RUN,
        env_step=1,
        update=1,
        episode=1,
        wall=1.0,
        episodes=99_999,
        returns=returns,
        seed=1,
        **numbers_,
    )
    with SpoolWriter(spool_directory) as writer:
        writer.append([record])
    evaluation, note = (
        json.loads(payload) for payload in SpoolReader(spool_directory).read().payloads
    )
    assert evaluation["returns"] == []
    assert note["code"] == "evaluation_returns_dropped"


def _append_many(directory: Path, writer_number: int, count: int) -> None:
    with SpoolWriter(directory, segment_bytes=4_000) as writer:
        for value in range(count):
            writer.append_raw(
                [
                    f'["{writer_number}",{value},0]'.encode(),
                    f'["{writer_number}",{value},1]'.encode(),
                ]
            )


@pytest.mark.processes
def test_records_of_several_processes_get_consecutive_numbers(spool_directory: Path):
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=_append_many, args=(spool_directory, number, 400))
        for number in range(3)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    reader = SpoolReader(spool_directory)
    documents = []
    while batch := reader.read(max_records=100).payloads:
        documents += [json.loads(payload) for payload in batch]
    assert len(documents) == 2_400
    for number in range(3):
        assert [(value, half) for who, value, half in documents if who == str(number)] == [
            (v, h) for v in range(400) for h in (0, 1)
        ]
    for first, second in zip(documents[::2], documents[1::2], strict=True):
        assert first[:2] == second[:2], "an append is one piece"


_KILLED = """
import sys
from pathlib import Path
from palestra.telemetry.spool import SpoolWriter
writer = SpoolWriter(Path(sys.argv[1]), segment_bytes=200_000)
print("go", flush=True)
value = int(sys.argv[2])
while True:
    writer.append_raw([str(value + i).encode() + b" " * 3000 for i in range(40)])
    value += 40
    print("appended", flush=True)
"""


@pytest.mark.processes
def test_a_writer_killed_at_any_moment_leaves_records_in_order(spool_directory: Path):
    next_value = 1
    for round_number in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", _KILLED, str(spool_directory), str(next_value)],
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        for _ in range(1 + 2 * round_number):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        with SpoolWriter(spool_directory) as writer:
            next_value = writer.last_seq() + 1
    assert next_value > 100
    assert read_all(spool_directory) == list(range(1, next_value))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 300), max_size=5), max_size=20),
    st.integers(20, 400),
    st.data(),
)
def test_any_sequence_of_operations_is_read_back(tmp_path_factory, appends, segment_bytes, data):
    directory = tmp_path_factory.mktemp("spool")
    written: list[bytes] = []
    writers = [SpoolWriter(directory, segment_bytes=segment_bytes) for _ in range(2)]
    for sizes in appends:
        payloads = [b"%d" % (len(written) + i) + b"." * size for i, size in enumerate(sizes)]
        assert data.draw(st.sampled_from(writers)).append_raw(payloads) == len(written) + len(
            payloads
        )
        written += payloads
    after = data.draw(st.integers(0, len(written)))
    with SpoolReader(directory, after) as reader:
        got: list[bytes] = []
        while batch := reader.read(
            data.draw(st.integers(1, 9)), data.draw(st.integers(1, 900))
        ).payloads:
            got += batch
    assert got == written[after:]
    for writer in writers:
        writer.close()


def test_reading_the_new_end_does_not_read_the_old_start(
    spool_directory: Path, monkeypatch: pytest.MonkeyPatch
):
    writer = SpoolWriter(spool_directory)
    writer.append_raw([b"x" * 500_000] * 10)
    reader = SpoolReader(spool_directory)
    while reader.read().payloads:
        pass
    read = 0
    real = os.pread

    def read_and_count(descriptor: int, size: int, offset: int) -> bytes:
        nonlocal read
        data = real(descriptor, size, offset)
        read += len(data)
        return data

    monkeypatch.setattr(os, "pread", read_and_count)
    writer.append_raw([b"new"])
    assert reader.read().payloads == (b"new",)
    assert read < 1_000
