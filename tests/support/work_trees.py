"""Git work trees as current directories, and helpers that read a run directory."""

import subprocess
from pathlib import Path

import pytest


def git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], check=True, capture_output=True)


@pytest.fixture
def directory_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Changes to a directory that is not in a Git work tree."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def tree(directory_without_git: Path) -> Path:
    """Changes to a Git work tree with one commit."""
    git("init", "-q")
    git("config", "user.name", "tester")
    git("config", "user.email", "tester@example.org")
    (directory_without_git / "agent.py").write_text("lr = 1\n")
    git("add", "agent.py")
    git("commit", "-q", "-m", "first")
    return directory_without_git


def read(directory: str, name: str) -> str:
    return (Path(directory) / f"{name}.txt").read_text()
