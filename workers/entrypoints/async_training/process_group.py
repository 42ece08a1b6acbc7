"""A group of processes that are started together and killed when a context is left.

Starts the processes, receives their messages, waits for their end, kills them, and converts their
failures to exceptions in the parent. Independent of what the processes compute.
"""

import contextlib
import os
import pickle
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import connection, resource_tracker
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any, Final, Protocol, Self

from workers.core.errors import WorkerError

_GO: Final = "go"
_JOIN_SECONDS: Final = 5.0


class ProcessFailedError(WorkerError):
    """A process ended without a message, or its exception cannot be pickled."""


class RemoteTraceback(Exception):  # noqa: N818 - shown as the cause of an error, it is none itself
    """Holds the formatted traceback of an exception in another process."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


@dataclass(frozen=True, slots=True)
class ReadyMessage:
    """Sent by a process that has initialised and waits for the others."""


@dataclass(frozen=True, slots=True)
class DoneMessage:
    """Sent by a process whose body returned without an exception."""


@dataclass(frozen=True, slots=True)
class FailureMessage:
    """Sent by a process that an exception ended."""

    error: bytes | None
    """The pickled exception; `None` if it cannot be pickled."""
    summary: str
    traceback: str

    def to_exception(self, index: int) -> BaseException:
        """Returns the exception to raise in the parent, with a `RemoteTraceback` as its cause."""
        error: BaseException | None = None
        if self.error is not None:
            with contextlib.suppress(Exception):
                error = pickle.loads(self.error)  # noqa: S301 - packed by a process of ours
        if not isinstance(error, Exception):
            error = ProcessFailedError(f"process {index}: {self.summary}")
        error.__cause__ = RemoteTraceback(self.traceback)
        error.add_note(f"Raised in process {index}.")
        return error


class GroupListener(Protocol):
    """Interface of an object that handles the processes' events in the parent."""

    def receive(self, index: int, message: object) -> None:
        """Handles a message other than `ReadyMessage`, `DoneMessage` and `FailureMessage`."""

    def on_failure(self, index: int, error: BaseException, *, alive: Sequence[int]) -> None:
        """Handles a process that failed, once; `alive` are the indices of the running ones."""

    def on_tick(self) -> None:
        """Checks for signals and events; called at least once per tick."""


@dataclass(slots=True)
class _Child:
    index: int
    process: BaseProcess
    link: connection.Connection
    pidfd: int = -1
    is_done: bool = False
    has_failed: bool = False
    has_ended: bool = False


class ProcessGroup:
    """Starts processes and receives their messages.

    A context manager: on exit it kills its processes and their descendants.

    Args:
        starter: Multiprocessing context, which defines the start method.
        target: Module-level function that each process runs as `target(parent_pid, index, link,
            order)`, such as `training_process.enter`.
    """

    def __init__(self, starter: BaseContext, target: Callable[..., None]) -> None:
        self._starter: Any = starter
        self._target = target
        self._children: list[_Child] = []
        self._waiting: set[int] = set()
        self._deadline: float | None = None
        self.has_begun = False
        """Whether all processes were ready and were sent the start message."""

    def start(self, orders: Sequence[object]) -> None:
        """Starts one process per element of `orders`, with `OMP_NUM_THREADS` set to 1.

        Raises:
            Exception: Any exception of pickling an order. Processes that were started before wait
                for the start message and are killed with the group.
        """
        with _set_inherited_settings():
            for index, order in enumerate(orders):
                ours, theirs = self._starter.Pipe()
                try:
                    process = self._starter.Process(
                        target=self._target,
                        args=(os.getpid(), index, theirs, order),
                        name=f"async-{index}",
                    )
                    process.start()
                finally:
                    theirs.close()
                self._children.append(_Child(index, process, ours, os.pidfd_open(process.pid)))
                self._waiting.add(index)

    @property
    def alive(self) -> list[int]:
        """Indices of the processes that have neither finished, failed nor ended."""
        return [
            child.index
            for child in self._children
            if not (child.has_ended or child.has_failed or child.is_done)
        ]

    def receive_messages(self, listener: GroupListener, tick: float) -> None:
        """Receives messages until all processes have ended, and starts the run once all are ready.

        Between the last process's message that it is ready and the start, `listener.on_tick` is
        called.

        Args:
            listener: Called for each event.
            tick: Longest wait for messages in seconds, after which `listener.on_tick` is called.
        """
        while running := [child for child in self._children if not child.has_ended]:
            sources = {child.link: child for child in running} | {
                child.pidfd: child for child in running
            }
            for ready in connection.wait(list(sources), tick):
                child = sources[ready]  # type: ignore[index]
                if child.has_ended:
                    continue
                if ready is not child.link or not self._receive_message(child, listener):
                    self._finish(child, listener)
            listener.on_tick()
            if not self._waiting and not self.has_begun:
                self._begin()
            if self._deadline is not None and time.monotonic() > self._deadline:
                self.kill()

    def expect_end(self, seconds: float) -> None:
        """Sets the time, `seconds` from now, after which `receive_messages` kills all processes.

        Only the first call has an effect.
        """
        if self._deadline is None:
            self._deadline = time.monotonic() + seconds

    def kill(self) -> None:
        """Sends SIGKILL to all processes and to the sessions that they lead."""
        for child in self._children:
            _kill_session(child)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        for child in self._children:
            child.process.join(_JOIN_SECONDS)
            child.link.close()
            os.close(child.pidfd)
            if child.process.exitcode is not None:
                child.process.close()

    def _receive_message(self, child: _Child, listener: GroupListener) -> bool:
        """Receives one message; returns False if the process has closed its connection."""
        try:
            message = child.link.recv()
        except (EOFError, OSError):
            return False
        match message:
            case ReadyMessage():
                self._waiting.discard(child.index)
            case DoneMessage():
                child.is_done = True
            case FailureMessage():
                self._fail(child, listener, message.to_exception(child.index))
            case _:
                listener.receive(child.index, message)
        return True

    def _fail(self, child: _Child, listener: GroupListener, error: BaseException) -> None:
        child.has_failed = True
        listener.on_failure(child.index, error, alive=self.alive)

    def _begin(self) -> None:
        """Sends the start message to all processes."""
        self.has_begun = True
        for child in self._children:
            with contextlib.suppress(OSError):
                child.link.send(_GO)

    def _finish(self, child: _Child, listener: GroupListener) -> None:
        """Receives the remaining messages of an ended process and reports a failure."""
        connection.wait([child.pidfd], _JOIN_SECONDS)
        _kill_session(child)
        child.process.join(_JOIN_SECONDS)
        while _has_message(child.link) and self._receive_message(child, listener):
            pass
        child.has_ended = True
        if not child.has_failed and not child.is_done:
            self._fail(child, listener, _loss_error(child, is_waiting=child.index in self._waiting))


def wait_for_start(link: connection.Connection) -> bool:
    """Reports that this process is ready, and blocks until all processes are.

    Returns False if the parent closed the connection before it started the run.
    """
    link.send(ReadyMessage())
    try:
        return bool(link.recv() == _GO)
    except (EOFError, OSError):
        return False


def _loss_error(child: _Child, *, is_waiting: bool) -> ProcessFailedError:
    code = child.process.exitcode
    name = f"process {child.index} (pid {child.process.pid})"
    if code is None:
        return ProcessFailedError(f"{name} does not end, though it closed its connection")
    if code < 0:
        return ProcessFailedError(f"{name} was killed by {signal.Signals(-code).name}")
    if is_waiting:
        hint = (
            "its standard error says why; with spawn, a script must start training "
            "under `if __name__ == '__main__':`"
        )
        return ProcessFailedError(f"{name} ended with status {code} before it was ready: {hint}")
    return ProcessFailedError(f"{name} ended with status {code} and said nothing")


def _has_message(link: connection.Connection) -> bool:
    try:
        return link.poll(0)
    except OSError:
        return False


def _kill_session(child: _Child) -> None:
    """Sends SIGKILL to a process and to the process group that it leads."""
    if child.has_ended or child.process.pid is None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.process.pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(child.pidfd, signal.SIGKILL)


@contextlib.contextmanager
def _set_inherited_settings() -> Iterator[None]:
    """Sets the environment and the signal mask that started processes inherit.

    `OMP_NUM_THREADS` is 1, and SIGINT is blocked until the started process has set it to ignored.
    """
    before = os.environ.get("OMP_NUM_THREADS")
    resource_tracker.ensure_running()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
