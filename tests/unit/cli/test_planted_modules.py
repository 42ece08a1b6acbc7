"""No command imports code of the current directory, where anybody may have put it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from palestra.python_command import build_python_command
from tests.support.process_stack import REPOSITORY, make_bare_environment
from tests.support.waiting import PATIENCE_SECONDS

PLANTED = ("app", "workers", "palestra", "yaml", "pydantic", "sqlalchemy", "celery", "secrets")
"""Packages of Palestra, packages that it needs, and a module of Python."""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with packages that tell who imports them."""
    for name in PLANTED:
        (tmp_path / name).mkdir()
        note = f"open({str(tmp_path / 'imported')!r}, 'a').write({name!r} + ' ')"
        code = f"{note}\nraise SystemExit(9)\n"
        (tmp_path / name / "__init__.py").write_text(code)
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ("server", "--help"),
        ("daemons", "--help"),
        ("worker", "--help"),
        ("up", "--help"),
        ("db", "upgrade"),
        ("login-link", "--data-dir", "other"),
        ("audit", "verify", "--data-dir", "other"),
        ("play", "run_x"),
    ],
    ids=" ".join,
)
def test_commands_import_nothing_of_the_current_directory(
    directory: Path, arguments: tuple[str, ...]
) -> None:
    command = [str(Path(sys.executable).with_name("palestra")), *arguments]
    done = subprocess.run(
        command,
        cwd=directory,
        env=make_bare_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert not (directory / "imported").exists(), (directory / "imported").read_text()
    assert done.returncode in {0, 1, 2}, done.stderr


@pytest.mark.parametrize(
    "module", ["workers.play", "workers.supervisor", "workers.assembly.catalogue"]
)
def test_programs_that_commands_start_import_nothing_of_the_current_directory(
    directory: Path, module: str
) -> None:
    command = build_python_command(module)
    subprocess.run(
        command,
        cwd=directory,
        env=make_bare_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert not (directory / "imported").exists(), (directory / "imported").read_text()


def test_one_function_builds_the_command_lines_of_python() -> None:
    """A command that another place builds would import from the current directory."""
    builders = {
        file.relative_to(REPOSITORY).as_posix()
        for package in ("app", "palestra", "workers")
        for file in (REPOSITORY / package).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.List) and any(map(_is_python, node.elts))
    }
    assert builders == {"palestra/python_command.py"}


def _is_python(node: ast.AST) -> bool:
    return ast.unparse(node) == "sys.executable"
