"""The processes of `palestra up`: which ends are followed by a new start."""

import sys
from pathlib import Path

import pytest

from palestra.cli.embedded.child_processes import ChildFailedError, Children, Program
from palestra.cli.embedded.datadir import DataDir
from tests.support.process_stack import wait_for


def ended(data: Path, code: int) -> tuple[Children, list[str]]:
    """Returns children of which one has ended with `code`, and what they report."""
    said: list[str] = []
    directory = DataDir(data)
    directory.prepare()
    children = Children(directory, said.append)
    children.start(Program("worker", [sys.executable, "-c", f"raise SystemExit({code})"]))
    wait_for(lambda: not children.is_alive("worker"), 20, "it ends")
    return children, said


def test_a_worker_that_finds_its_directory_taken_is_started_again(tmp_path: Path) -> None:
    """Line 15.3: `palestra up` waits for the processes of the last worker to end."""
    children, said = ended(tmp_path, 75)
    first = children.pid("worker")
    children.tend()
    assert "starting it again" in said[0]

    def is_another() -> bool:
        children.tend()
        return children.pid("worker") != first

    wait_for(is_another, 20, "a new start")
    children.stop(())


def test_a_worker_that_was_started_wrongly_is_not(tmp_path: Path) -> None:
    children, _ = ended(tmp_path, 2)
    with pytest.raises(ChildFailedError):
        children.tend()
