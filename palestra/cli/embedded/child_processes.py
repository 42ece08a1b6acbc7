"""Starts, restarts and stops the child processes of an embedded instance.

Each child leads its own process group, so that Ctrl-C at the terminal reaches only the command,
which then stops the children in order; the kernel sends SIGTERM to a child whose parent ended. All
have a marker variable in their environment, by which grandchildren are found too.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from palestra.backoff import Backoff
from palestra.cli.embedded.datadir import DataDir, read_json, write_private
from palestra.processes import has_variable, list_process_ids, read_stat

MARK: Final = "_PALESTRA_INSTANCE"
"""Variable in every process of an instance; its value is the data directory.

It is not a setting and so lacks the prefix of settings.
"""

_PR_SET_PDEATHSIG: Final = 1
_FIRST_WAIT: Final = 0.2
_MAX_WAIT_SECONDS: Final = 10.0
_GOOD_LIFE: Final = 30.0
"""Seconds of life after which the next restart happens at once."""
_LIBC: Final = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


@dataclass(frozen=True, slots=True)
class Program:
    """A program to run, with its name."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    grace: float = 10.0
    """Seconds between SIGTERM and SIGKILL."""


@dataclass(slots=True)
class _Child:
    program: Program
    process: subprocess.Popen[bytes]
    started: float
    backoff: Backoff = field(
        default_factory=lambda: Backoff(longest=_MAX_WAIT_SECONDS, first=_FIRST_WAIT)
    )
    restart_at: float | None = None


class Children:
    """The processes of one instance.

    Args:
        data: Data directory; names the instance.
        report: Called with a sentence when a process has died and is restarted.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        data: DataDir,
        report: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._data = data
        self._report = report
        self._clock = clock
        self._children: dict[str, _Child] = {}

    def environment(self, program: Program) -> dict[str, str]:
        """Returns the environment of a program.

        The environment of this process without variables `PALESTRA_*`, with those of the program
        and the variable that marks the instance.
        """
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith("PALESTRA_")
        }
        return {**kept, **program.environment, MARK: str(self._data.root)}

    def start(self, program: Program) -> None:
        """Starts a program; `restart_ended` restarts it when it has ended."""
        self._children[program.name] = _Child(program, self._spawn(program), self._clock())
        self._remember()

    def run(self, program: Program, timeout: float = 120.0) -> str:
        """Runs a program to its end and returns what it printed.

        Raises:
            ChildFailedError: If it ends with another code than 0; the message is its last line of
                output.
        """
        process = self._popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            output, errors = process.communicate(timeout=timeout)
        except BaseException:
            _signal_group(process.pid, signal.SIGKILL)
            process.wait()
            raise
        if process.returncode != 0:
            raise ChildFailedError(
                program.name, process.returncode, errors.decode(errors="replace")
            )
        return output.decode(errors="replace")

    def is_alive(self, name: str) -> bool:
        """Returns whether the program of this name is running."""
        return name in self._children and self._children[name].process.poll() is None

    def pid(self, name: str) -> int:
        """Returns the process id of a program that was started."""
        return self._children[name].process.pid

    def restart_ended(self) -> None:
        """Restarts programs that have ended, after a wait that grows with each early end.

        Raises:
            ChildFailedError: If a program reports wrong usage (exit code 2), which no restart
                resolves.
        """
        for child in self._children.values():
            if child.restart_at is not None:
                if self._clock() >= child.restart_at:
                    child.process, child.started, child.restart_at = (
                        self._spawn(child.program),
                        self._clock(),
                        None,
                    )
                    self._remember()
            elif (code := child.process.poll()) is not None:
                self._plan_restart(child, code)

    def _plan_restart(self, child: _Child, code: int) -> None:
        name = child.program.name
        if code == 2:
            raise ChildFailedError(name, code, self.tail(name))
        if self._clock() - child.started > _GOOD_LIFE:
            child.backoff.reset()
        how = (
            f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        )
        self._report(f"{name} {how}; starting it again (see {self._data.log(name)})")
        child.restart_at = self._clock() + child.backoff.compute_next_wait()

    def stop(self, order: Sequence[str]) -> None:
        """Stops the named processes in this order, then all others with the marker variable."""
        for name in [
            *(name for name in order if name in self._children),
            *(name for name in self._children if name not in order),
        ]:
            child = self._children[name]
            _stop(child.process, child.program.grace)
        self._children.clear()
        kill_marked(self._data.root)
        self._data.children.unlink(missing_ok=True)

    def kill(self) -> None:
        """Sends SIGKILL to every process group, without waiting; safe in a signal handler."""
        for child in tuple(self._children.values()):
            if child.process.returncode is None:
                _signal_group(child.process.pid, signal.SIGKILL)

    def tail(self, name: str, characters: int = 2_000) -> str:
        """Returns the end of a program's output."""
        try:
            return self._data.log(name).read_text("utf-8", "replace")[-characters:]
        except OSError:
            return ""

    def _spawn(self, program: Program) -> subprocess.Popen[bytes]:
        log = self._data.log(program.name)
        if log.exists() and log.stat().st_size > 2**23:
            log.replace(log.with_suffix(".log.1"))
        with log.open("ab") as output:
            log.chmod(0o600)
            return self._popen(program, stdout=output, stderr=output)

    def _popen(self, program: Program, **streams: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - our own programs
            list(program.command),
            env=self.environment(program),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            # This process has one thread, and the function makes one system call.
            preexec_fn=_follow_parent,  # noqa: PLW1509
            **streams,
        )

    def _remember(self) -> None:
        rows = {
            name: [child.process.pid, _start_ticks(child.process.pid)]
            for name, child in self._children.items()
        }
        write_private(self._data.children, json.dumps(rows))


class ChildFailedError(Exception):
    """A child process failed in a way that a restart does not resolve."""

    def __init__(self, name: str, code: int, output: str) -> None:
        lines = [line for line in output.strip().splitlines() if line.strip()]
        super().__init__(lines[-1] if lines else f"{name} ended with code {code}")
        self.name = name
        self.code = code


def end_leftovers(data: DataDir, within: float = 15.0) -> None:
    """Ends the direct children of an instance that was killed.

    Their own children, such as a training's supervisor, continue.
    """
    deadline = time.monotonic() + within
    recorded = {int(pid): ticks for pid, ticks in read_json(data.children).values()}
    while living := [
        pid
        for pid, ticks in recorded.items()
        if _start_ticks(pid) == ticks and _is_marked(pid, data.root)
    ]:
        for pid in living:
            _signal_group(
                pid, signal.SIGTERM if time.monotonic() < deadline - 2 else signal.SIGKILL
            )
        if time.monotonic() > deadline:
            break
        time.sleep(0.1)
    data.children.unlink(missing_ok=True)


def find_marked(root: Path) -> list[int]:
    """Returns the pids of the instance's running processes, without the calling process."""
    return [
        pid
        for pid in list_process_ids()
        if pid != os.getpid() and _is_marked(pid, root) and _start_ticks(pid) is not None
    ]


def kill_marked(root: Path, within: float = 10.0) -> None:
    """Kills the remaining processes of an instance until none is left."""
    deadline = time.monotonic() + within
    while (pids := find_marked(root)) and time.monotonic() < deadline:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.02)


def _start_ticks(pid: int) -> int | None:
    stat = read_stat(pid)
    return stat.start_ticks if stat is not None and stat.is_running else None


def _is_marked(pid: int, root: Path) -> bool:
    return has_variable(pid, f"{MARK}={root}")


def _follow_parent() -> None:
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _stop(process: subprocess.Popen[bytes], grace: float) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            _signal_group(process.pid, signal.SIGKILL)
            process.wait()


def _signal_group(pid: int, number: signal.Signals) -> None:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return
