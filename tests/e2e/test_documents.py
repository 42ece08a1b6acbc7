"""Runs the shell blocks of README and docs unchanged and in order, beside a `palestra up`.

The examples that they submit train for a shorter time than those of the repository.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import make_short_directory
from tests.e2e.palestra_up import UpProcess
from tests.support.documents import REPOSITORY, read_blocks
from tests.support.forked_palestra import run_forked_palestra
from tests.support.process_stack import make_bare_environment

pytestmark = [pytest.mark.processes, pytest.mark.extended]

PAGES = ("README.md", "docs/training.md", "docs/guide.md", "docs/team.md")
LENGTHS = {"env_steps": 4_096, "updates": 500}
"""Longest trainings of examples."""


@pytest.fixture(scope="module")
def checkout() -> Iterator[Path]:
    """A directory like a checkout after its setup, in which `palestra up` runs."""
    with make_short_directory() as directory:
        shutil.copytree(REPOSITORY / "examples", directory / "examples")
        for example in (directory / "examples").rglob("*.yaml"):
            _shorten(example)
        _link_environment(directory / ".venv")
        up = UpProcess(directory, "--port", "0", "--slots", "2")
        try:
            up.wait_until_ready()
            with run_forked_palestra(directory / ".venv"):
                yield directory
        finally:
            up.stop()


def _link_environment(place: Path) -> None:
    """Makes a virtual environment of links to this one, which lacks `palestra`."""
    (place / "bin").mkdir(parents=True)
    for part in Path(sys.prefix).iterdir():
        if part.name != "bin":
            (place / part.name).symlink_to(part)
    for program in (Path(sys.prefix) / "bin").iterdir():
        if program.name != "palestra":
            (place / "bin" / program.name).symlink_to(program)


def _shorten(example: Path) -> None:
    text = example.read_text("utf-8")
    for name, longest in LENGTHS.items():
        text = re.sub(
            rf"^(    {name}:) (\d+)$",
            lambda found, longest=longest: f"{found[1]} {min(int(found[2]), longest)}",
            text,
            flags=re.MULTILINE,
        )
    example.write_text(text, "utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run(page: str, checkout: Path) -> None:
    blocks = [
        block
        for block in read_blocks(REPOSITORY / page)
        if block.needs is None and block.language in {"sh", "python"}
    ]
    if page == "docs/training.md":
        # The Python blocks of this page are one program, which `test_docs.py` runs.
        blocks = [block for block in blocks if block.language == "sh"]
    parts = [
        f"echo '== {block.page}:{block.line}' >&2\n"
        + _make_shell_command(block.language, block.text)
        for block in blocks
    ]
    environment = {
        **make_bare_environment(),
        "PATH": f"{checkout / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", "\n".join(parts)],
        cwd=checkout,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-4_000:]


def _make_shell_command(language: str, text: str) -> str:
    return text if language == "sh" else f"python - <<'END_OF_PYTHON'\n{text}END_OF_PYTHON\n"
