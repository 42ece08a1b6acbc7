"""Spawned subprocesses that execute commands sent over pipes.

Commands, results and makers are pickled, so functions and classes must be importable. A
subprocess ends with its parent, even while it executes a command.
"""

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, Final, NamedTuple

from workers.core.errors import WorkerError, pickle_error, unwrapped_error

Command = tuple[Any, ...]
Handler = Callable[[Command], Any]
"""Executes a command in the subprocess; its result is sent to the parent."""
Maker = Callable[[], Handler]
"""Builds the handler at the subprocess's first command; it must be importable, as must arguments
that `functools.partial` binds.
"""

_EXIT_SECONDS: Final = 5.0


class CommandFailure(NamedTuple):
    """An exception that a command raised in the subprocess."""

    description: str
    """Type and message."""
    traceback: str
    error: bytes | None
    """The exception pickled; `None` if it cannot be pickled."""
    environment_error: bytes | None
    """The pickled exception that an environment raised; see `unwrapped_error`."""


class Subprocess:
    """A spawned process that executes one command at a time.

    Args:
        name: Name of the process.
        maker: Builds the handler of commands in the process.
    """

    def __init__(self, name: str, maker: Maker) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, maker), name=name, daemon=True)
        self.process.start()
        theirs.close()

    def receive(self) -> Any:
        """Waits for the result of the current command; a `CommandFailure` if the command raised.

        Raises:
            EOFError: If the process has ended.
            OSError: If the process has ended in a way that breaks the pipe.
        """
        wait([self.pipe, self.process.sentinel])
        return self.pipe.recv()

    def join(self) -> None:
        """Waits for the end of the process, and kills it after five seconds."""
        self.process.join(_EXIT_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


class SubprocessPool:
    """Starts subprocesses that execute commands concurrently.

    Args:
        kind: What error messages call a subprocess, such as `sampler worker`.
        error: Type of the error that is raised if a subprocess raised or is dead.
        makers: One per subprocess.
    """

    def __init__(self, kind: str, error: type[WorkerError], makers: Sequence[Maker]) -> None:
        self._kind = kind
        self._error = error
        self._running = [Subprocess(f"{kind} {index}", maker) for index, maker in enumerate(makers)]
        self.has_pending_results = False
        """Whether results are outstanding, because an exception interrupted `execute`."""

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids."""
        return tuple(one.process.pid or 0 for one in self._running)

    @property
    def is_idle(self) -> bool:
        """Whether all subprocesses are alive and none executes a command."""
        return not self.has_pending_results and all(one.process.is_alive() for one in self._running)

    def execute(self, commands: Sequence[Command]) -> list[Any]:
        """Sends one command to each of the first subprocesses and waits for all results.

        Raises:
            WorkerError: An error of the pool's type, if a subprocess raised or is dead. Its cause
                is the exception of the subprocess, if that can be pickled.
        """
        self.has_pending_results = True
        for index, (one, command) in enumerate(zip(self._running, commands, strict=False)):
            try:
                one.pipe.send(command)
            except OSError as error:
                raise self._end_error(index) from error
        results = [self._receive(index) for index in range(len(commands))]
        self.has_pending_results = False
        for index, result in enumerate(results):
            if isinstance(result, CommandFailure):
                # Pickled by our subprocess.
                pickled = result.environment_error
                cause = None if pickled is None else pickle.loads(pickled)  # noqa: S301
                raise self._error(
                    f"{self._kind} {index} raised {result.description}\n\n{result.traceback}"
                ) from cause
        return results

    def close(self) -> None:
        """Ends the subprocesses; kills them at once if they still execute a command."""
        for one in self._running:
            one.pipe.close()
            if self.has_pending_results:
                one.process.kill()
        for one in self._running:
            one.join()

    def _receive(self, index: int) -> Any:
        try:
            return self._running[index].receive()
        except (EOFError, OSError) as error:
            raise self._end_error(index) from error

    def _end_error(self, index: int) -> WorkerError:
        process = self._running[index].process
        process.join(_EXIT_SECONDS)
        code = process.exitcode or 0
        how = (
            f"was ended by {signal.Signals(-code).name}"
            if code < 0
            else f"ended with exit status {code}"
        )
        return self._error(
            f"{self._kind} {index} (process {process.pid}) {how}: "
            "its memory or its environment may be the cause"
        )


def watch_parent(end: Callable[[], object]) -> None:
    """Starts a thread that calls `end` when the parent of this subprocess has ended."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    sentinel = parent.sentinel

    def watch() -> None:
        wait([sentinel])
        end()

    threading.Thread(target=watch, name="parent", daemon=True).start()


def _serve(pipe: Connection, maker: Maker) -> None:
    """Executes commands in the subprocess until the parent closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watch_parent(lambda: os._exit(1))
    handler: Handler | None = None
    while True:
        try:
            command = pipe.recv()
        except EOFError:
            return
        try:
            handler = handler or maker()
            pipe.send(handler(command))
        # User code may raise anything; the parent reports it.
        except Exception as error:  # noqa: BLE001
            pipe.send(
                CommandFailure(
                    description=f"{type(error).__name__}: {error}",
                    traceback=traceback.format_exc(),
                    error=pickle_error(error),
                    environment_error=pickle_error(unwrapped_error(error)),
                )
            )
