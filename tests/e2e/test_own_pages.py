"""Follows docs/own-environment.md and docs/own-agent.md literally, as a new user would.

In an empty directory with a fresh virtual environment, each file is written where the page says,
each command is run unchanged, and the trainings succeed. The installed packages of this environment
are shared by a path instead of being installed again.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from palestra.cli.embedded.child_processes import find_marked
from palestra.client import Client
from tests.support.process_stack import REPOSITORY, make_bare_environment
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.processes

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"^`([\w./-]+)`[^\n]*(?:\n[^\n]+)*:\n\n\Z", re.MULTILINE)


_COMMANDS = {"palestra": "palestra.cli.__main__:run", "pip": "pip._internal.cli.main:main"}


@dataclass
class PageReader:
    """A user with two terminals in one directory, who follows a page."""

    directory: Path
    palestra_up: subprocess.Popen[str] | None = None
    said: list[str] = field(default_factory=list)

    def follow(self, page: Path) -> None:
        """Executes the instructions of a page from top to bottom."""
        text = page.read_text(encoding="utf-8")
        for block in _BLOCK.finditer(text):
            language, content = block.groups()
            if language == "sh":
                for command in content.splitlines():
                    self.type(command)
            else:
                named = _NAMED.search(text[: block.start()])
                assert named is not None, f"the page does not say which file this is:\n{content}"
                self.write(named[1], content)

    def write(self, name: str, content: str) -> None:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")

    def type(self, command: str) -> None:
        if command.startswith("palestra up"):
            self.start(command)
            return
        terminal = {
            "cwd": self.directory,
            "env": self.get_environment(),
            "capture_output": True,
            "text": True,
        }
        done = subprocess.run(command, shell=True, check=False, **terminal)
        assert done.returncode == 0, (
            f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}\n{self.log()}"
        )
        self.said.append(done.stdout)

    def start(self, command: str) -> None:
        """Runs `palestra up` in the second terminal; an earlier instance is stopped by Ctrl-C."""
        self.stop()
        self.palestra_up = subprocess.Popen(
            [
                self.get_environment()["PATH"].split(os.pathsep)[0] + "/palestra",
                *command.split()[1:],
            ],
            cwd=self.directory,
            env=self.get_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert self.palestra_up.stdout is not None
        lines = []
        for line in self.palestra_up.stdout:
            lines.append(line)
            if "Ctrl-C stops it" in line:
                return
        pytest.fail("".join(lines) + self.log())

    def stop(self) -> None:
        if self.palestra_up is not None:
            self.palestra_up.send_signal(signal.SIGINT)
            self.palestra_up.communicate(timeout=PATIENCE_SECONDS)
            self.palestra_up = None

    def get_environment(self) -> dict[str, str]:
        """Returns the variables of an activated virtual environment.

        No package index can be reached, since all required packages are installed.
        """
        bare = {
            name: value
            for name, value in make_bare_environment().items()
            if name not in {"PYTHONPATH", "VIRTUAL_ENV"}
        }
        path = os.pathsep.join([str(self.directory / "venv" / "bin"), bare["PATH"]])
        return {
            **bare,
            "PATH": path,
            "PIP_NO_INDEX": "1",
            "PIP_NO_BUILD_ISOLATION": "0",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }

    def log(self) -> str:
        logs = sorted((self.directory / ".palestra" / "logs").glob("*.log"))
        return "\n".join(
            f"--- {path.name}\n{path.read_text(errors='replace')[-3000:]}" for path in logs
        )

    def open_client(self) -> Client:
        from palestra.cli.embedded.datadir import DataDir

        data = DataDir(self.directory / ".palestra")
        return Client(data.read_state()["url"], data.user_token.read_text().strip())


@pytest.fixture
def reader() -> Iterator[PageReader]:
    directory = Path(tempfile.mkdtemp(prefix="plr-", dir="/tmp"))
    _create_environment(directory / "venv")
    one = PageReader(directory)
    yield one
    if one.palestra_up is not None:
        one.palestra_up.kill()
        one.palestra_up.communicate()
    for pid in find_marked(directory / ".palestra"):
        psutil.Process(pid).kill()
    shutil.rmtree(directory, ignore_errors=True)


def _create_environment(place: Path) -> None:
    """Creates a fresh virtual environment that shares the packages of this one."""
    venv.create(place, symlinks=True)
    (packages,) = place.glob("lib/python*/site-packages")
    shared = [str(REPOSITORY), *(path for path in sys.path if path.endswith("site-packages"))]
    (packages / "shared.pth").write_text("\n".join(shared) + "\n")
    for name, function in _COMMANDS.items():
        module, _, called = function.partition(":")
        command = place / "bin" / name
        command.write_text(
            f"#!{place}/bin/python\nimport sys\n\nfrom {module} import {called}\n\n"
            f"sys.exit({called}())\n"
        )
        command.chmod(0o755)


@pytest.mark.parametrize(
    ("page", "experiments", "distribution"),
    [
        ("own-environment.md", {"Corridor": 2, "Hallway": 1}, "corridor 1.0"),
        ("own-agent.md", {"Hill climbing": 2}, "climber 1.0"),
    ],
)
def test_the_trainings_of_a_page_succeed(
    reader: PageReader, page: str, experiments: dict[str, int], distribution: str
) -> None:
    reader.follow(REPOSITORY / "docs" / page)
    assert any(distribution in said for said in reader.said), "the catalogue shows whose code it is"
    with reader.open_client() as client:
        found = {experiment.name: experiment for experiment in client.experiments()}
        assert {name: dict(experiment.runs) for name, experiment in found.items()} == {
            name: {"succeeded": count} for name, count in experiments.items()
        }
        runs = [run for experiment in found.values() for run in client.runs(experiment.id)]
        assert all(run.latest_evaluation is not None for run in runs)
        if page == "own-environment.md":
            assert found["Hallway"].env == "Hallway-v0"
            learnt = [
                run.latest_evaluation.mean
                for run in client.runs(found["Corridor"].id)
                if run.latest_evaluation
            ]
            assert max(learnt) > 0.9, "somebody who never reaches the end returns -0.4"
