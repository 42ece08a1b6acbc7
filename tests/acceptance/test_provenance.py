"""Rows P72 to P82: generate_exp_id and prepare_output_dir."""

import argparse
import json
import re
import subprocess
from pathlib import Path

import pytest

from palestra.provenance import generate_exp_id, prepare_output_dir
from tests.support.work_trees import git, read


def test_P72_id_is_deterministic_and_needs_git(tree: Path) -> None:
    first = generate_exp_id(argv=["train.py", "--lr", "1"])
    assert first == generate_exp_id(argv=["train.py", "--lr", "1"])
    assert re.fullmatch(r"[0-9a-f]{40}-[0-9a-f]{16}", first)


def test_P72_outside_git_is_an_error(directory_without_git: Path) -> None:
    with pytest.raises(RuntimeError, match="not in a git work tree"):
        generate_exp_id()


def test_P72_without_a_commit_is_an_error(directory_without_git: Path) -> None:
    git("init", "-q")
    with pytest.raises(RuntimeError, match="no commit yet"):
        generate_exp_id()


def test_P73_prefix(tree: Path) -> None:
    assert generate_exp_id("cartpole", ["a"]) == "cartpole-" + generate_exp_id(argv=["a"])
    with pytest.raises(ValueError, match="plain name"):
        generate_exp_id("../up")


def test_P74_arguments_and_every_change_of_the_tree_give_another_id(tree: Path) -> None:
    seen = {generate_exp_id(argv=["a"]), generate_exp_id(argv=["b"])}
    (tree / "agent.py").write_text("lr = 2\n")
    seen.add(generate_exp_id(argv=["a"]))
    (tree / "new.py").write_text("x")
    seen.add(generate_exp_id(argv=["a"]))
    (tree / "new.py").write_text("y")
    seen.add(generate_exp_id(argv=["a"]))
    (tree / "new.py").rename(tree / "other.py")
    seen.add(generate_exp_id(argv=["a"]))
    assert len(seen) == 6


def test_P74_default_arguments_are_read_at_the_call(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["one.py"])
    first = generate_exp_id()
    monkeypatch.setattr("sys.argv", ["two.py"])
    assert generate_exp_id() != first
    assert first == generate_exp_id(argv=["one.py"])


def test_P75_files(tree: Path) -> None:
    directory = prepare_output_dir({"lr": 1}, argv=["train.py"])
    assert {path.name for path in Path(directory).iterdir()} == {
        ".gitignore",
        *(
            f"{name}.txt"
            for name in (
                "args",
                "command",
                "environ",
                "start",
                "git-head",
                "git-status",
                "git-log",
                "git-diff",
            )
        ),
    }
    assert (
        read(directory, "git-head").strip()
        == subprocess.run(
            ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()
    )
    assert "first" in read(directory, "git-log")


def test_P75_no_git_files_outside(directory_without_git: Path) -> None:
    directory = prepare_output_dir({"lr": 1})
    assert {path.name for path in Path(directory).iterdir()} == {
        "args.txt",
        "command.txt",
        "environ.txt",
        "start.txt",
    }


@pytest.mark.parametrize(
    "args",
    [
        {"lr": 0.1, "layers": [64, 64], "name": "ü"},
        argparse.Namespace(lr=0.1, layers=[64, 64], name="ü"),
    ],
)
def test_P76_args_round_trip(directory_without_git: Path, args: object) -> None:
    directory = prepare_output_dir(args, exp_id="x")  # type: ignore[arg-type]
    assert json.loads(read(directory, "args")) == {"lr": 0.1, "layers": [64, 64], "name": "ü"}


def test_P76_what_has_no_json_form_is_refused_before_anything_exists(
    directory_without_git: Path,
) -> None:
    with pytest.raises(TypeError):
        prepare_output_dir({"env": object()}, exp_id="x")
    assert list(directory_without_git.iterdir()) == []


def test_P77_basedir(directory_without_git: Path) -> None:
    assert Path(prepare_output_dir({}, exp_id="x")).resolve() == directory_without_git / "x"
    assert (
        Path(prepare_output_dir({}, basedir=directory_without_git / "a" / "b", exp_id="x"))
        == directory_without_git / "a" / "b" / "x"
    )


def test_P78_exp_id(tree: Path) -> None:
    assert Path(prepare_output_dir({}, exp_id="given")).name == "given"
    assert Path(prepare_output_dir({}, argv=["a"])).name == generate_exp_id(argv=["a"])


def test_P78_outside_git_the_time_names_the_directory(directory_without_git: Path) -> None:
    assert re.fullmatch(r"\d{8}T\d{6}\.\d{6}", Path(prepare_output_dir({})).name)


@pytest.mark.parametrize("name", ["", "..", "a/b", "/etc"])
def test_P78_an_exp_id_is_never_a_path(directory_without_git: Path, name: str) -> None:
    with pytest.raises(ValueError, match="plain name"):
        prepare_output_dir({}, exp_id=name)
    assert list(directory_without_git.iterdir()) == []


def test_P79_argv_is_in_the_command_file_and_in_the_id(tree: Path) -> None:
    directory = prepare_output_dir({}, argv=["train.py", "--name", "two words"])
    assert read(directory, "command") == "train.py --name 'two words'"
    assert Path(directory).name != Path(prepare_output_dir({}, argv=["other.py"])).name


def test_P80_time_format(directory_without_git: Path) -> None:
    assert re.fullmatch(r"\d{4}_run", Path(prepare_output_dir({}, time_format="%Y_run")).name)
    prepare_output_dir({}, exp_id="x")
    prepare_output_dir({}, exp_id="x", time_format="%Y")
    assert [
        path.name
        for path in directory_without_git.glob("x.*.backup")
        if re.fullmatch(r"x\.\d{4}\.backup", path.name)
    ]


def test_P81_backup_has_the_old_content(directory_without_git: Path) -> None:
    directory = Path(prepare_output_dir({"lr": 1}, exp_id="x"))
    (directory / "scores.txt").write_text("1")
    prepare_output_dir({"lr": 2}, exp_id="x")
    (backup,) = directory_without_git.glob("x.*.backup")
    assert (backup / "scores.txt").read_text() == "1"
    assert json.loads((backup / "args.txt").read_text()) == {"lr": 1}
    assert json.loads((directory / "args.txt").read_text()) == {"lr": 2}
    assert len((backup / "start.txt").read_text().splitlines()) == 1


def test_P81_backups_of_one_moment_do_not_collide(directory_without_git: Path) -> None:
    for _ in range(3):
        prepare_output_dir({}, exp_id="x", time_format="same")
    assert sorted(path.name for path in directory_without_git.iterdir()) == [
        "x",
        "x.same-1.backup",
        "x.same.backup",
    ]


def test_P81_no_backup(directory_without_git: Path) -> None:
    for _ in range(2):
        prepare_output_dir({}, exp_id="x", make_backup=False)
    assert [path.name for path in directory_without_git.iterdir()] == ["x"]


def test_P82_a_restart_has_the_same_directory_and_appends_a_line(tree: Path) -> None:
    first = prepare_output_dir({}, argv=["a"])
    assert prepare_output_dir({}, argv=["a"], make_backup=False) == first
    assert len(read(first, "start").splitlines()) == 2
