"""The child processes of `palestra up`: which exit codes lead to a restart."""

import sys
from pathlib import Path

import pytest

from palestra.cli.embedded.child_processes import ChildFailedError, Children, Program
from palestra.cli.embedded.datadir import DataDir
from tests.support.waiting import wait_for


def make_children_with_ended_child(data: Path, code: int) -> tuple[Children, list[str]]:
    """Returns children of which one has ended with `code`, and the lines that they reported."""
    said: list[str] = []
    directory = DataDir(data)
    directory.prepare()
    children = Children(directory, said.append)
    children.start(Program("worker", [sys.executable, "-c", f"raise SystemExit({code})"]))
    wait_for(lambda: not children.is_alive("worker"), "it ends")
    return children, said


def test_a_worker_whose_directory_is_in_use_is_started_again(tmp_path: Path) -> None:
    """`palestra up` waits until the processes of the previous worker have ended."""
    children, said = make_children_with_ended_child(tmp_path, 75)
    first = children.pid("worker")
    children.restart_ended()
    assert "starting it again" in said[0]

    def is_another() -> bool:
        children.restart_ended()
        return children.pid("worker") != first

    wait_for(is_another, "a new start")
    children.stop(())


def test_a_worker_with_wrong_options_is_not_started_again(tmp_path: Path) -> None:
    children, _ = make_children_with_ended_child(tmp_path, 2)
    with pytest.raises(ChildFailedError):
        children.restart_ended()
