"""A `palestra` for shells whose calls are forks of one process, and so import nothing.

    python -m tests.support.forked_palestra SOCKET

A call passes its arguments, environment, working directory and standard streams. A command that
turns into another program, or runs until it is stopped, is run by a process of its own.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import palestra.cli.main
from palestra.cli.__main__ import run
from tests.support.process_stack import REPOSITORY
from tests.support.waiting import wait_for

IMPORTED: Final = palestra.cli.main
"""What `run` imports: here before the first fork, and not in each."""
OWN_PROCESSES: Final = ("server", "daemons", "worker", "db", "login-link", "up", "demo")
"""Commands that need a process of their own; so does `palestra audit verify`."""
_CALL: Final = """#!{python} -IS
import json, os, socket, sys
arguments = sys.argv[1:]
if arguments[:1] in {own} or arguments[:2] == ["audit", "verify"]:
    os.execv({python!r}, [{python!r}, "-m", "palestra.cli", *arguments])
call = {{"arguments": arguments, "directory": os.getcwd(), "environment": dict(os.environ)}}
with socket.socket(socket.AF_UNIX) as server:
    server.connect({socket!r})
    text = json.dumps(call).encode() + b"\\n"
    sent = socket.send_fds(server, [text], [0, 1, 2])
    server.sendall(text[sent:])
    answer = server.recv(1)
sys.exit(answer[0] if answer else 70)
"""


@contextmanager
def run_forked_palestra(directory: Path) -> Iterator[Path]:
    """Yields a directory for `PATH`, `bin`, to which the command `palestra` was added.

    Args:
        directory: A directory with a short path, since it contains a socket.
    """
    place = directory / "commands"
    command = directory / "bin" / "palestra"
    command.parent.mkdir(parents=True, exist_ok=True)
    own = [[name] for name in OWN_PROCESSES]
    command.write_text(_CALL.format(python=sys.executable, own=own, socket=str(place)))
    command.chmod(0o755)
    server = subprocess.Popen(
        [sys.executable, "-m", __name__, str(place)],
        cwd=REPOSITORY,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_for(place.exists, "commands can be called")
        yield command.parent
    finally:
        server.kill()
        server.wait()


def serve(place: str) -> None:
    """Forks for each call until it is killed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no child is waited for
    with socket.socket(socket.AF_UNIX) as listener:
        # The name appears when calls are accepted.
        listener.bind(f"{place}.new")
        listener.listen()
        Path(f"{place}.new").rename(place)
        while True:
            caller, _ = listener.accept()
            with caller:
                if os.fork() == 0:
                    listener.close()
                    _answer(caller)


def _answer(caller: socket.socket) -> None:
    """Runs the command of a call in this process, which ends with it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    exit_code = 1
    try:
        call = _receive(caller)
        os.chdir(call["directory"])
        os.environ.clear()
        os.environ.update(call["environment"])
        sys.argv = ["palestra", *call["arguments"]]
        try:
            exit_code = run()
        except SystemExit as end:
            exit_code = int(end.code or 0)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        caller.sendall(bytes([exit_code]))
        os._exit(exit_code)


def _receive(caller: socket.socket) -> dict[str, Any]:
    """Returns a call, whose standard streams become those of this process."""
    text, streams, _, _ = socket.recv_fds(caller, 65_536, 3)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    while not text.endswith(b"\n"):
        text += caller.recv(65_536)
    return dict(json.loads(text))


if __name__ == "__main__":
    serve(sys.argv[1])
