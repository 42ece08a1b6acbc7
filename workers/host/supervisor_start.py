"""Starts the supervisor of a claimed attempt and waits for its confirmation."""

import json
import os
import select
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from palestra.python_command import build_python_command
from workers.host.slots import HeldSlots
from workers.ipc.attempt_directory import AttemptDirectory
from workers.ipc.credentials import Credentials
from workers.ipc.process_tree import python_environment

CONFIRM_SECONDS: Final = 30.0


class SupervisorStartError(Exception):
    """The supervisor did not confirm its start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorStart:
    """The arguments with which a supervisor is started."""

    directory: AttemptDirectory
    credentials: Credentials
    slots: HeldSlots
    gpus: tuple[int, ...] = ()


def start_supervisor(start: SupervisorStart) -> None:
    """Starts the supervisor in a new session.

    It inherits the locks of the slots and receives its credentials through a pipe.

    Raises:
        SupervisorStartError: If it does not confirm in time. The caller then releases the attempt;
            a supervisor that starts late ends because its attempt is stale.
    """
    read_end, write_end = os.pipe()
    try:
        process = _spawn(start, write_end)
    except OSError as error:
        os.close(read_end)
        raise SupervisorStartError(f"the supervisor cannot be started: {error}") from error
    finally:
        os.close(write_end)
    try:
        _hand_over(process, start.credentials)
        _await_confirmation(read_end, start.directory)
    except SupervisorStartError:
        process.kill()
        raise
    finally:
        os.close(read_end)
        process.wait()


def _spawn(start: SupervisorStart, ready: int) -> subprocess.Popen[bytes]:
    command = build_python_command("workers.supervisor", "--attempt-dir", str(start.directory.root))
    held = start.slots.descriptors
    descriptors = ["--ready-fd", str(ready), *(f"--slot-fd={one}" for one in held)]
    with start.directory.supervisor_log.open("ab") as log:
        return subprocess.Popen(  # noqa: S603 - our own module
            [*command, *descriptors, "--gpus", ",".join(map(str, start.gpus))],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            pass_fds=(ready, *held),
            env=python_environment(os.environ),
            start_new_session=True,
        )


def _hand_over(process: subprocess.Popen[bytes], credentials: Credentials) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(asdict(credentials)).encode())
        process.stdin.close()
    except OSError as error:
        raise SupervisorStartError(
            f"the supervisor did not take its credentials: {error}"
        ) from error


def _await_confirmation(ready: int, directory: AttemptDirectory) -> None:
    readable, _, _ = select.select([ready], [], [], CONFIRM_SECONDS)
    if not readable or not os.read(ready, 64):
        raise SupervisorStartError(
            f"the supervisor did not confirm; see {directory.supervisor_log}. "
            f"Its last line: {_read_last_line(directory.supervisor_log)}"
        )


def _read_last_line(log: Path) -> str:
    try:
        lines = log.read_text("utf-8", "replace").split("\n")
    except OSError:
        return ""
    return next((line for line in reversed(lines) if line.strip()), "")
