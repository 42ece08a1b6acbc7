"""Files and file lengths named in docs/architecture.md are correct."""

import re

import pytest

from tests.support.documents import REPOSITORY

PAGE = REPOSITORY / "docs/architecture.md"
_PATH = re.compile(r"`((?:app|palestra|workers|frontend|tests|benchmarks|docs)/[\w./-]*)`")
_LENGTH = re.compile(r"`([\w./]+\.py)` \((\d+) lines\)")
TOLERANCE = 0.15
"""Relative difference permitted between a length in the page and the file's length."""


def find_paths(page: str) -> list[str]:
    """Returns the paths of the repository that a page names in backticks."""
    return _PATH.findall(page)


def find_lengths(page: str) -> list[tuple[str, int]]:
    """Returns the number of lines that a page states, for each file."""
    return [(path, int(lines)) for path, lines in _LENGTH.findall(page)]


def test_every_file_that_the_page_names_exists() -> None:
    named = find_paths(PAGE.read_text())
    assert len(named) > 50, "the four ways through the code are named"
    assert not [path for path in named if not (REPOSITORY / path).exists()]


@pytest.mark.parametrize(("path", "lines"), sorted(set(find_lengths(PAGE.read_text()))))
def test_stated_file_lengths_are_correct(path: str, lines: int) -> None:
    actual = len((REPOSITORY / path).read_text().splitlines())
    assert abs(actual - lines) <= TOLERANCE * actual, f"{path} has {actual} lines: amend the page"


def test_the_page_names_three_files_for_each_of_three_algorithms() -> None:
    rows = [
        line
        for line in PAGE.read_text().splitlines()
        if line.startswith(("| PPO", "| DQN", "| SAC"))
    ]
    assert [len(find_lengths(row)) for row in rows] == [3, 3, 3]


def test_a_missing_file_is_found() -> None:
    assert find_paths("see `workers/engine/engine.py` and `workers/nothing/`") == [
        "workers/engine/engine.py",
        "workers/nothing/",
    ]
    assert find_lengths("| `workers/x.py` (120 lines) |") == [("workers/x.py", 120)]
