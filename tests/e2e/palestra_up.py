"""Runs `palestra up` as a process, for tests that start, stop and kill it."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from palestra.cli.embedded.child_processes import find_marked
from palestra.cli.embedded.datadir import DataDir, read_json
from tests.support.process_stack import make_bare_environment
from tests.support.waiting import PATIENCE_SECONDS


class UpProcess:
    """A process that runs `palestra up --json` on a data directory."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.data = DataDir(directory / ".palestra")
        command = [
            sys.executable,
            "-m",
            "palestra.cli",
            "up",
            "--json",
            *(arguments or ("--port", "0")),
        ]
        self.process = subprocess.Popen(
            command,
            cwd=directory,
            env=make_bare_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def wait_until_ready(self) -> dict[str, Any]:
        """Waits until the server answers."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.end()[1]
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self) -> tuple[int, str]:
        """Waits for the process to end; returns its exit code and the text of its error stream."""
        _, errors = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, errors

    def stop(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """Sends a signal and waits for the process to end."""
        self.process.send_signal(number)
        return self.end()

    def get_pid(self, name: str) -> int:
        """Returns the process ID of a child."""
        return int(self.read_children()[name][0])

    def read_children(self) -> dict[str, Any]:
        """Returns process ID and start of each child that was started, by its name."""
        return dict(read_json(self.data.children))


def has_ended_cleanly(up: UpProcess) -> bool:
    """Returns whether an instance left no process and no list of processes."""
    return find_marked(up.data.root) == [] and not up.data.children.exists()
