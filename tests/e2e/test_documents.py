"""Runs the shell blocks of README and docs unchanged and in order, beside a `palestra up`."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.palestra_up import UpProcess
from tests.support.documents import REPOSITORY, read_blocks
from tests.support.process_stack import make_bare_environment

pytestmark = [pytest.mark.processes, pytest.mark.extended, pytest.mark.timeout(1600)]
PAGES = ("README.md", "docs/training.md", "docs/guide.md", "docs/team.md")


@pytest.fixture
def checkout(directory: Path) -> Iterator[Path]:
    """A directory like a checkout after its setup, in which `palestra up` runs."""
    shutil.copytree(REPOSITORY / "examples", directory / "examples")
    (directory / ".venv").symlink_to(sys.prefix)
    up = UpProcess(directory, "--port", "0", "--slots", "2")
    try:
        up.wait_until_ready()
        yield directory
    finally:
        up.stop()


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
        timeout=1500,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-4_000:]


def _make_shell_command(language: str, text: str) -> str:
    return text if language == "sh" else f"python - <<'END_OF_PYTHON'\n{text}END_OF_PYTHON\n"
