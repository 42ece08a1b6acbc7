"""Reading a work tree runs no program that its repository names."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from palestra.provenance import capture
from palestra.worktree import NoWorkTreeError, open_worktree
from tests.support.work_trees import git, tree

__all__ = ["tree"]

NAMES_PROGRAM = re.compile(
    r"(cmd|command|program|tool|hook|hookspath|pager|editor|helper|textconv|clean|smudge|process"
    r"|driver|external|askpass|gitproxy|fsmonitor|browser|vcs|uploadpack|receivepack|proxy|exec"
    r"|sshvariant|trustexitcode|packobjectshook|path)$",
    re.IGNORECASE,
)
"""How keys of git's configuration end that name a program or a file."""
HOOKS = ("pre-commit", "post-index-change", "fsmonitor-watchman", "reference-transaction")


def _plant(repository: Path, mark: Path) -> int:
    """Names a program that writes `mark` wherever a repository can; returns the number of keys."""
    program = mark.with_name("program")
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {mark}\ncat\n')
    program.chmod(0o755)
    listed = subprocess.run(["git", "help", "--config"], capture_output=True, text=True, check=True)
    keys = {
        re.sub(r"<[^>]*>|\*", "planted", key)
        for key in listed.stdout.split()
        if NAMES_PROGRAM.search(key) and "." in key
    }
    driver = {"filter.planted.clean", "filter.planted.smudge", "diff.planted.textconv"}
    # With this key git asks the driver in a protocol of its own.
    keys = (keys | driver) - {"filter.planted.process"}
    settings = {key: str(program) for key in sorted(keys)} | {"log.showSignature": "true"}
    planted = [key for key, value in settings.items() if _set(repository, key, value)]
    hooks = repository / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in HOOKS:
        (hooks / name).symlink_to(program)
    (repository / ".gitattributes").write_text("* filter=planted diff=planted merge=planted\n")
    return len(planted)


def _set(repository: Path, key: str, value: str) -> bool:
    """Sets a key, unless git then refuses the repository, since the key names no program."""
    file = repository / ".git" / "config"
    before = file.read_text()
    outside = repository.parent
    git("-C", str(outside), "config", "--file", str(file), key, value)
    check = ["git", "-C", str(repository), "diff", "HEAD"]
    if subprocess.run(check, capture_output=True, check=False).returncode == 0:
        return True
    file.write_text(before)
    return False


def test_no_program_of_the_configuration_or_of_attributes_is_run(
    tree: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    mark = tmp_path_factory.mktemp("planted") / "mark"
    assert _plant(tree, mark) > 30
    (tree / "agent.py").write_text("lr = 2\n")
    (tree / "new.py").write_text("lr = 3\n")
    git("diff", "HEAD")
    assert mark.exists(), "git itself runs a planted program"
    mark.unlink()
    record = capture(with_untracked=True)
    assert not mark.exists(), mark.read_text()
    assert "-lr = 1\n+lr = 2" in record["git"]["diff"]
    assert "+lr = 3" in record["git"]["diff"]
    assert "first" in record["git"]["log"]
    assert record["git"]["dirty_digest"]


def test_no_program_of_a_submodule_is_run_and_its_changes_count(
    tree: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    mark = tmp_path_factory.mktemp("planted") / "mark"
    origin = tmp_path_factory.mktemp("origin")
    git("-C", str(origin), "init", "-q")
    (origin / "part.py").write_text("a = 1\n")
    git("-C", str(origin), "add", ".")
    git("-C", str(origin), *_AUTHOR, "commit", "-q", "-m", "part")
    git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(origin), "part")
    git(*_AUTHOR, "commit", "-q", "-m", "with a part")
    assert open_worktree().dirty_digest() is None
    own = tree / ".git" / "modules" / "part"
    git("-C", str(own), "config", "filter.planted.clean", f"echo ran >> {mark}; cat")
    (own / "info").mkdir(exist_ok=True)
    (own / "info" / "attributes").write_text("* filter=planted\n")
    (tree / "part" / "part.py").write_text("a = 2\n")
    git("status")
    assert mark.exists(), "git itself runs the program of the submodule"
    mark.unlink()
    assert capture()["git"]["dirty_digest"] is not None
    assert not mark.exists()


_AUTHOR = ("-c", "user.name=tester", "-c", "user.email=tester@example.org")


def test_a_folder_of_a_clone_that_looks_like_a_git_directory_is_none(
    tree: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clone cannot contain a folder `.git`, but all of its files below another name."""
    mark = tmp_path_factory.mktemp("planted") / "mark"
    work = tree / "exp" / "wt"
    work.mkdir(parents=True)
    git("init", "-q", "--bare", str(tree / "exp"))
    for key, value in (("core.bare", "false"), ("core.worktree", "wt")):
        git("config", "--file", str(tree / "exp" / "config"), key, value)
    (work / "agent.py").write_text("lr = 1\n")
    inside = ("--git-dir", str(tree / "exp"), "--work-tree", str(work))
    git(*inside, "add", "agent.py")
    git(*inside, *_AUTHOR, "commit", "-q", "-m", "inner")
    planted = f"echo ran >> {mark}; cat"
    git("config", "--file", str(tree / "exp" / "config"), "filter.planted.clean", planted)
    (work / ".gitattributes").write_text("* filter=planted\n")
    (work / "agent.py").write_text("lr = 2\n")
    monkeypatch.chdir(work)
    git("diff", "HEAD")
    assert mark.exists(), "git itself takes the folder for a git directory"
    mark.unlink()
    with pytest.raises(NoWorkTreeError):
        open_worktree()
    capture(with_untracked=True)
    assert not mark.exists()


def _link(tree: Path) -> Path:
    git("worktree", "add", "-q", str(tree.with_name("linked")), "-b", "other")
    return tree.with_name("linked")


def _split(tree: Path) -> Path:
    git("update-index", "--split-index")
    return tree


def _clone_shallowly(tree: Path) -> Path:
    git("clone", "-q", "--depth", "1", f"file://{tree}", str(tree.with_name("shallow")))
    return tree.with_name("shallow")


def _hash_by_sha256(tree: Path) -> Path:
    place = tree.with_name("sha256")
    git("init", "-q", "--object-format=sha256", str(place))
    (place / "agent.py").write_text("lr = 1\n")
    git("-C", str(place), "add", ".")
    git("-C", str(place), *_AUTHOR, "commit", "-q", "-m", "first")
    return place


def _convert_line_ends(tree: Path) -> Path:
    git("config", "core.autocrlf", "true")
    (tree / "agent.py").write_bytes(b"lr = 1\r\n")
    return tree


def _exclude(tree: Path) -> Path:
    (tree / ".git" / "info" / "exclude").write_text("*.log\n")
    (tree / "run.log").write_text("x")
    return tree


def _detach(tree: Path) -> Path:
    git("checkout", "-q", "--detach")
    return tree


@pytest.mark.parametrize(
    "make",
    [_link, _split, _clone_shallowly, _hash_by_sha256, _convert_line_ends, _exclude, _detach],
)
def test_work_trees_of_every_kind_are_read_as_git_reads_them(
    tree: Path, make: Callable[[Path], Path]
) -> None:
    (tree / "second.py").write_text("a = 1\n")
    git("add", "second.py")
    git("commit", "-q", "-m", "second")
    place = make(tree)
    worktree = open_worktree(place)
    assert worktree.dirty_digest() is None
    assert worktree.diff() == ""
    assert worktree.log().count("\ncommit ") + 1 == (
        1 if place.name in {"shallow", "sha256"} else 2
    )
    own = subprocess.run(
        ["git", "status", "--short", "--branch"],
        cwd=place,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert worktree.status() == own.partition("...")[0].rstrip("\n") + "\n"
    (place / "agent.py").write_text("lr = 2\n")
    assert "+lr = 2" in worktree.diff()
    assert worktree.dirty_digest() is not None
