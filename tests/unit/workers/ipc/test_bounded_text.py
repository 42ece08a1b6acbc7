"""Of a text that is too long head and tail are kept, wherever Palestra limits a message."""

import random

import pytest

from palestra.contract.states import Cause, Order, Outcome
from palestra.contract.telemetry import MAX_LOG_LINE
from palestra.contract.work_order import End, Failure
from workers.ipc import run_log
from workers.ipc.bounded_text import BoundedText, shorten
from workers.supervisor.outcome import TrainerExit, report_of
from workers.trainer_process.failures import describe_failure

RUN = "run_" + "0" * 26
LONG = "begin " + "é" * 100_000 + " the reason"


@pytest.mark.parametrize("length", [0, 1, 99, 100])
def test_a_text_that_fits_is_unchanged(length: int) -> None:
    assert shorten("é" * length, 100) == "é" * length


@pytest.mark.parametrize("length", [101, 1_000, 10_000_000])
def test_head_and_tail_have_the_number_of_bytes_between(length: int) -> None:
    text = shorten("a" + "é" * (length - 2) + "z", 100)
    assert len(text) <= 100
    head, note, tail = text.split(" ... ")
    assert (head[0], tail[-1]) == ("a", "z")
    assert note == f"[{2 * (length - len(head) - len(tail)):,} bytes left out]"


def test_a_text_that_grows_is_that_of_all_its_parts() -> None:
    chooser = random.Random(0)
    bounded, whole = BoundedText(200), ""
    for _ in range(500):
        part = chooser.choice("abcé") * chooser.randint(0, 30)
        bounded.append(part)
        whole += part
        assert str(bounded) == shorten(whole, 200)


def test_removing_reaches_only_what_is_kept() -> None:
    bounded = BoundedText(100)
    bounded.append("x" * 60)
    bounded.remove_last(50)
    bounded.append("y")
    assert str(bounded) == "x" * 10 + "y"
    bounded.append("z" * 1_000)
    bounded.remove_last(10**30)
    assert str(bounded).startswith("x" * 10 + "y")


def test_the_message_and_the_traceback_of_an_exception_keep_their_end() -> None:
    _, failure = describe_failure(ValueError(LONG))
    assert failure.message.startswith("ValueError: begin")
    assert failure.message.rstrip().endswith("the reason")
    assert failure.traceback is not None
    assert failure.traceback.startswith("ValueError: begin")
    assert failure.traceback.rstrip().endswith("the reason")


def test_the_last_line_in_the_message_of_a_killed_trainer_keeps_its_end() -> None:
    report = report_of(
        TrainerExit(exit_status=-9, report=None, order=Order.CONTINUE, last_line=LONG)
    )
    assert report.failure is not None
    assert report.failure.message.startswith("The trainer was killed by SIGKILL")
    assert report.failure.message.endswith("the reason")


def test_lines_of_palestra_keep_their_end() -> None:
    end = End(
        outcome=Outcome.FAILED,
        cause=Cause.USER_EXCEPTION,
        failure=Failure(message="m", traceback="x" * 40_000 + " the reason"),
    )
    (record,) = run_log.log_records(RUN, run_log.end_lines(end))
    assert len(record.lines[-1]) <= MAX_LOG_LINE
    assert record.lines[-1].endswith("the reason")
