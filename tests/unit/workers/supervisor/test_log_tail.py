import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from palestra.contract.names import new_id
from palestra.contract.telemetry import MAX_LOG_LINE, MAX_OPEN_LINE, MAX_OPEN_LINES, LogLines
from palestra.telemetry.spool import SpoolReader, SpoolWriter
from workers.ipc.attempt_directory import AttemptDirectory
from workers.ipc.json_log import get_logger
from workers.supervisor import log_tail
from workers.supervisor.attempt_telemetry import Observer
from workers.supervisor.log_tail import OPEN_SECONDS, LogTail
from workers.supervisor.resource_usage import ResourceSampler

RUN = "run_" + "0" * 26
BAR = "\r 50%|█████     | 5/10"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "trainer.log"


def list_lines(records) -> list[str]:
    return [line for record in records for line in record.lines]


def list_open_lines(records) -> list[str]:
    """Returns the open lines after some records."""
    *_, last = records
    return list(last.open_lines)


def add(path: Path, data: bytes | str) -> None:
    with path.open("ab") as file:
        file.write(data.encode() if isinstance(data, str) else data)


def follow(path: Path, writes: list[bytes]) -> Iterator[LogLines]:
    """Yields the records of an output that is polled, a second later, after each write."""
    clock = Clock()
    tail = LogTail(path, RUN, clock=clock)
    for data in writes:
        add(path, data)
        clock.now += OPEN_SECONDS
        yield from tail.poll()
    yield from tail.finish()


def test_complete_lines_are_returned_once(log: Path):
    tail = LogTail(log, RUN)
    assert list_lines(tail.poll()) == []
    add(log, b"one\ntwo\nthr")
    assert list_lines(tail.poll()) == ["one", "two"]
    add(log, b"ee\n\n")
    assert list_lines(tail.poll()) == ["three", ""]
    assert list_lines(tail.finish()) == []


def test_a_line_without_an_end_is_open_until_it_is_complete(log: Path):
    clock = Clock()
    tail = LogTail(log, RUN, clock=clock)
    add(log, b"loading...")
    records = list(tail.poll())
    assert (list_lines(records), list_open_lines(records)) == ([], ["loading..."])
    clock.now += OPEN_SECONDS
    assert list(tail.poll()) == [], "its text has not changed"
    add(log, b" done\nlast")
    records = list(tail.poll())
    assert (list_lines(records), list_open_lines(records)) == (["loading... done"], ["last"])
    records = list(tail.finish())
    assert (list_lines(records), list_open_lines(records)) == (["last"], [])


def test_a_bar_is_recorded_at_most_once_a_second_and_completed_at_the_end(log: Path):
    clock = Clock()
    tail = LogTail(log, RUN, clock=clock)
    records: list[LogLines] = []
    for step in range(50):
        add(log, f"\r{step / 50:4.0%} step {step}")
        clock.now += 0.1
        records += tail.poll()
    assert list_lines(records) == []
    shown = [record.open_lines for record in records]
    assert 4 <= len(shown) <= 6
    assert shown[0] == ("  0% step 0",)
    assert list_lines(tail.finish()) == [" 98% step 49"]


@pytest.mark.parametrize("end", ["", "\n", "\r", "\r\n", "\r\r\n", "\r\x1b[?25h\n"])
@pytest.mark.parametrize("refresh", ["\r{}", "{}\r", "\r\x1b[K{}", "\x1b[2K\x1b[1G{}", "\x1b[0G{}"])
def test_the_newest_text_of_a_bar_is_its_line(log: Path, refresh: str, end: str):
    writes = [refresh.format(f"{percent}%").encode() for percent in (9, 10, 100)]
    records = list(follow(log, [*writes, end.encode()]))
    assert [record.open_lines for record in records if record.open_lines] == [
        ("9%",), ("10%",), ("100%",)
    ]  # fmt: skip
    assert list_lines(records) == ["100%"]


@pytest.mark.parametrize(
    ("writes", "open_lines"),
    [
        (["|", "\b/", "\b-"], ["|", "/", "-"]),
        (["9%", "\b\b10%", "\b\b\b100%"], ["9%", "10%", "100%"]),
        (["a é", "\x1b[1Db"], ["a é", "a b"]),
        (["12345", "\b\b\b\x1b[K"], ["12345", "12"]),
        (["1/2", "\b\b\b\r2/2"], ["1/2", "2/2"]),
    ],
)
def test_backspaces_replace_the_end_of_a_line(log: Path, writes, open_lines):
    records = list(follow(log, [text.encode() for text in writes]))
    assert [record.open_lines[0] for record in records[:-1]] == open_lines
    assert list_lines(records) == open_lines[-1:]


def test_a_bar_that_is_cleared_leaves_no_line(log: Path):
    records = list(follow(log, [BAR.encode(), b"\r" + b" " * 30 + b"\r"]))
    assert [record.open_lines for record in records] == [(BAR[1:],), ()]
    assert list_lines(records) == []


def test_text_after_a_cleared_bar_is_a_line_of_its_own(log: Path):
    records = list(follow(log, [BAR.encode(), b"\r" + b" " * 30 + b"\r", b"epoch 1\n"]))
    assert list_lines(records) == ["epoch 1"]


def test_lines_beside_a_bar_are_complete_while_the_bar_stays_open(log: Path):
    bar, cleared = BAR.encode(), b"\r" + b" " * 30 + b"\r"
    records = list(follow(log, [bar, cleared + b"one\n" + bar, cleared + b"two\nthree\n" + bar]))
    assert [(record.lines, record.open_lines) for record in records] == [
        ((), (BAR[1:],)),
        (("one",), (BAR[1:],)),
        (("two", "three"), (BAR[1:],)),
        ((BAR[1:],), ()),
    ]


def write_nested_bars(outer: int, inner: int) -> str:
    """Returns the refresh of two bars, as tqdm writes it."""
    return f"\router {outer}" + "\n" + f"\rinner {inner}" + "\x1b[A"


def test_bars_of_two_lines_are_two_open_lines(log: Path):
    writes = [write_nested_bars(i // 10, i % 10).encode() for i in range(40)]
    records = list(follow(log, writes))
    assert records[20].open_lines == ("outer 2", "inner 0")
    assert list_lines(records) == ["outer 0", "outer 3", "inner 9"], "the first line was complete"


def test_lines_above_bars_of_two_lines_are_complete(log: Path):
    tail = LogTail(log, RUN)
    cleared = "\r       \n\r       \x1b[A\r"
    for i in range(5):
        add(log, write_nested_bars(0, i) + cleared + f"epoch {i}\n")
    add(log, write_nested_bars(1, 9))
    lines = list_lines(tail.finish())
    assert [line for line in lines if line.startswith("epoch")] == [f"epoch {i}" for i in range(5)]
    assert lines[-2:] == ["outer 1", "inner 9"]
    assert len(lines) <= 9


def test_long_after_bars_of_two_lines_each_line_is_complete_at_once(log: Path):
    tail = LogTail(log, RUN)
    add(log, write_nested_bars(9, 9) + "\n\n" + "".join(f"{i}\n" for i in range(100)))
    assert list_lines(tail.poll())[-1] == "99"


@pytest.mark.parametrize("rows", [MAX_OPEN_LINES + 1, 3 * MAX_OPEN_LINES])
def test_more_rows_than_are_kept_open_stay_bounded(log: Path, rows: int):
    refresh = "".join(f"row {i}\n" for i in range(rows)) + f"\x1b[{rows}A"
    records = list(follow(log, [refresh.encode()] * 20))
    assert max(len(record.open_lines) for record in records) <= MAX_OPEN_LINES
    assert len(list_lines(records)) <= 20 * rows
    assert list_lines(records)[-1] == f"row {rows - 1}"


@pytest.mark.parametrize("count", ["99999999999999999999", "9" * 5_000, "0", ""])
@pytest.mark.parametrize("final", "ABCDEFGHJKm")
def test_any_control_sequence_is_read(log: Path, count: str, final: str):
    lines = list_lines(follow(log, [f"one\ntwo\x1b[{count}{final}three\nfour\n".encode()]))
    assert {"one", "four"} <= set(lines)
    assert any("three" in line for line in lines)
    assert len(lines) <= 2 + MAX_OPEN_LINES


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
        (b"\xff\xfe caf\xc3\xa9", "\ufffd\ufffd café"),
        (b"a\0b", "a\ufffdb"),
        (b"10%\r50%\r100%", "100%"),
        (b"windows\r", "windows"),
        (b"</script>\x1b]52;c;aGk=\x07", "</script>\x1b]52;c;aGk=\x07"),
        (b"100%\r\x1b]0;title\x07", "100%"),
        ("日本".encode()[:4], "日\ufffd"),
    ],
)
def test_any_bytes_become_text(log: Path, raw: bytes, shown: str):
    add(log, raw + b"\n")
    assert list_lines(LogTail(log, RUN).poll()) == [shown]


@pytest.mark.parametrize(
    "text",
    [
        "é日本🤖\n",
        "10%\r日本 50%\r100% 🤖",
        "\x1b[31mred\x1b[0m\r\nnext\r\n",
        "\r日\n\r本\x1b[A\ré",
    ],
)
def test_where_a_read_ends_changes_no_character(log: Path, text: str, tmp_path: Path):
    data = text.encode()
    add(log, data)
    at_once = list_lines(LogTail(log, RUN).finish())
    for cut in range(1, len(data)):
        path = tmp_path / f"{cut}.log"
        records = list(follow(path, [data[:cut], data[cut:]]))
        assert list_lines(records) == at_once
        assert "\ufffd" not in "".join(text for record in records for text in record.open_lines)


def test_a_character_that_is_never_completed_is_replaced(log: Path):
    assert list_lines(follow(log, ["日本".encode()[:4]])) == ["日\ufffd"]


def test_of_a_long_line_head_and_tail_are_recorded(log: Path):
    line = "head " + "é" * 100_000 + " ValueError: the reason"
    add(log, line + "\nshort\n")
    long, short = list_lines(LogTail(log, RUN).finish())
    assert (len(long) <= MAX_LOG_LINE, short) == (True, "short")
    assert long.startswith("head éé")
    assert long.endswith("éé ValueError: the reason")
    head, note, tail = long.split(" ... ")
    omitted = int(note.strip("[]").removesuffix(" bytes left out").replace(",", ""))
    assert len(line.encode()) == len(head.encode()) + omitted + len(tail.encode())


@pytest.mark.parametrize("length", [MAX_LOG_LINE, MAX_LOG_LINE + 1])
def test_only_lines_over_the_limit_are_shortened(log: Path, length: int):
    add(log, b"x" * length)
    (line,) = list_lines(LogTail(log, RUN).finish())
    assert (line == "x" * length) == (length <= MAX_LOG_LINE)
    assert len(line) <= MAX_LOG_LINE


def test_an_open_line_is_recorded_with_head_and_tail(log: Path):
    (record, last) = follow(log, [b"begin" + b"x" * 200_000 + b"end"])
    (text,) = record.open_lines
    assert len(text) <= MAX_OPEN_LINE
    assert (text[:5], text[-3:]) == ("begin", "end")
    assert len(last.lines[0]) > MAX_OPEN_LINE


def test_an_endless_line_takes_no_memory(log: Path):
    add(log, b"y" * 5_000_000 + b"\nend\n")
    tail = LogTail(log, RUN)
    records = []
    for _ in range(40):
        records += tail.poll()
        assert len(tail._output._rows[0].text._tail) <= 8 * MAX_LOG_LINE + log_tail._READ_BYTES
    long, end = list_lines(records)
    assert (len(long) <= MAX_LOG_LINE, end) == (True, "end")
    assert "bytes left out" in long


def test_many_lines_become_many_records(log: Path):
    add(log, b"".join(b"%d\n" % i for i in range(5_000)) + b"open")
    records = list(LogTail(log, RUN).poll())
    assert max(len(record.lines) for record in records) <= 1_000
    assert list_lines(records) == [str(i) for i in range(5_000)]
    assert [record.open_lines for record in records] == [()] * 4 + [("open",)]


def test_following_ends_at_the_limit(log: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_tail, "MAX_LOG_BYTES", 8)
    add(log, b"1\n2\n3\n4\n")
    tail = LogTail(log, RUN)
    assert list_lines(tail.poll()) == ["1", "2", "3", "4"]
    add(log, b"5\n")
    assert list_lines(tail.finish()) == []
    assert tail.is_exhausted


def test_refreshes_of_a_bar_do_not_count_towards_the_limit(
    log: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(log_tail, "MAX_LOG_BYTES", 20)
    records = list(follow(log, [BAR.encode()] * 10 + [b"\rthe end\n"]))
    assert list_lines(records) == ["the end"]


def test_an_attempt_records_open_lines(tmp_path: Path):
    directory = AttemptDirectory(tmp_path / new_id("att"))
    directory.create(b"{}")
    with SpoolWriter(directory.spool) as spool:
        observer = Observer(directory, [RUN], spool, ResourceSampler(), get_logger())
        add(directory.trainer_log, BAR)
        observer.poll(0.0, list)
        observer.finish()
    records = [json.loads(payload) for payload in SpoolReader(directory.spool).read().payloads]
    assert [(record["lines"], record.get("open_lines")) for record in records] == [
        ([], [BAR[1:]]),
        ([BAR[1:]], None),
    ]


@pytest.mark.processes
def test_output_and_errors_of_a_process_are_one_log(log: Path):
    """Both streams are one file, as the trainer's are."""
    program = (
        "import os\n"
        "for i in range(3):\n"
        "    os.write(2, f'\\r{i} of 3'.encode())\n"
        "    os.write(1, b'\\repoch\\n' if i == 1 else b'')\n"
    )
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        subprocess.run(
            [sys.executable, "-c", program], stdout=descriptor, stderr=descriptor, check=True
        )
    finally:
        os.close(descriptor)
    tail = LogTail(log, RUN)
    records = list(tail.poll())
    assert (list_lines(records), list_open_lines(records)) == (["epoch"], ["2 of 3"])
    assert list_lines(tail.finish()) == ["2 of 3"]
    assert tail.last_line == "2 of 3"
