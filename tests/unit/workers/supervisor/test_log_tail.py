from pathlib import Path

import pytest

from palestra.contract.telemetry import MAX_LOG_LINE
from workers.supervisor import log_tail
from workers.supervisor.log_tail import LogTail

RUN = "run_" + "0" * 26


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "trainer.log"


def list_lines(records) -> list[str]:
    return [line for record in records for line in record.lines]


def add(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_complete_lines_are_returned_once(log: Path):
    tail = LogTail(log, RUN)
    assert list_lines(tail.poll()) == []
    add(log, b"one\ntwo\nthr")
    assert list_lines(tail.poll()) == ["one", "two"]
    add(log, b"ee\n\n")
    assert list_lines(tail.poll()) == ["three", ""]
    assert list_lines(tail.finish()) == []


def test_an_unfinished_line_is_returned_when_idle_and_at_the_end(log: Path):
    clock = Clock()
    tail = LogTail(log, RUN, clock=clock)
    add(log, b"loading...")
    assert list_lines(tail.poll()) == []
    assert list_lines(tail.poll()) == []
    clock.now += 1.5
    assert list_lines(tail.poll()) == ["loading..."]
    add(log, b" done\nlast")
    assert list_lines(tail.poll()) == [" done"]
    assert list_lines(tail.finish()) == ["last"]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
        (b"\xff\xfe caf\xc3\xa9", "\ufffd\ufffd café"),
        (b"a\0b", "a\ufffdb"),
        (b"10%\r50%\r100%", "100%"),
        (b"windows\r", "windows"),
        (b"</script>\x1b]52;c;aGk=\x07", "</script>\x1b]52;c;aGk=\x07"),
        ("日本".encode()[:4], "日\ufffd"),
    ],
)
def test_any_bytes_become_text(log: Path, raw: bytes, shown: str):
    add(log, raw + b"\n")
    assert list_lines(LogTail(log, RUN).poll()) == [shown]


def test_long_lines_are_cut_and_counted(log: Path):
    add(log, b"x" * (MAX_LOG_LINE + 5) + b"\nshort\n")
    (record,) = LogTail(log, RUN).poll()
    assert [len(line) for line in record.lines] == [MAX_LOG_LINE, 5]
    assert record.truncated == 5


def test_an_endless_line_takes_no_memory(log: Path):
    total = 5_000_000
    add(log, b"y" * total + b"\nend\n")
    tail = LogTail(log, RUN)
    records = []
    for _ in range(40):
        records += tail.poll()
        assert len(tail._splitter._line) <= 4 * MAX_LOG_LINE
    assert [len(line) for line in list_lines(records)] == [MAX_LOG_LINE, 3]
    assert sum(record.truncated for record in records) == total - MAX_LOG_LINE


def test_many_lines_become_many_records(log: Path):
    add(log, b"".join(b"%d\n" % i for i in range(5_000)))
    records = list(LogTail(log, RUN).finish())
    assert max(len(record.lines) for record in records) <= 1_000
    assert list_lines(records) == [str(i) for i in range(5_000)]


def test_following_ends_at_the_limit(log: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_tail, "MAX_LOG_BYTES", 8)
    add(log, b"1\n2\n3\n4\n")
    tail = LogTail(log, RUN)
    assert list_lines(tail.poll()) == ["1", "2", "3", "4"]
    add(log, b"5\n")
    assert list_lines(tail.finish()) == []
    assert tail.is_exhausted
