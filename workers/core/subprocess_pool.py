"""Processes that carry out the orders of the one that started them.

They are spawned, so what crosses is importable, or plain data. One ends with its parent, also in
the middle of an order; one that raises or dies is an error that says how. Must not know what the
orders are.
"""

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final, NamedTuple

from workers.core.errors import WorkerError, own_error, packed_error

Command = tuple[Any, ...]
Servant = Callable[[Command], Any]
"""Carries out orders in its process; its answers cross to the parent."""
Maker = Callable[[], Servant]
"""Importable, with its arguments (`functools.partial`): called in the process, at its first order.
"""

_ENOUGH_SECONDS: Final = 5.0


class _Running(NamedTuple):
    process: BaseProcess
    pipe: Connection


class Servants:
    """Starts processes and asks them.

    Args:
        kind: What errors call one, such as `sampler worker`.
        error: Raised where one raised, or is dead.
        makers: One per process.
    """

    def __init__(self, kind: str, error: type[WorkerError], makers: Sequence[Maker]) -> None:
        self._kind = kind
        self._error = error
        self._running = [_start(f"{kind} {index}", maker) for index, maker in enumerate(makers)]
        self.waiting = False
        """Whether answers are still under way: a call was left by an exception."""

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids."""
        return tuple(one.process.pid or 0 for one in self._running)

    @property
    def at_rest(self) -> bool:
        """Whether all live and none has an order to carry out."""
        return not self.waiting and all(one.process.is_alive() for one in self._running)

    def ask(self, orders: Sequence[Command]) -> list[Any]:
        """Sends an order to each of the first processes and waits for all answers.

        Raises:
            WorkerError: The error that was given, if a process raised or is dead. What it raised is
                the cause, where that can cross.
        """
        self.waiting = True
        for index, (one, order) in enumerate(zip(self._running, orders, strict=False)):
            try:
                one.pipe.send(order)
            except OSError as error:
                raise self._dead(index) from error
        answers = [self._answer(index) for index in range(len(orders))]
        self.waiting = False
        for index, (done, answer) in enumerate(answers):
            if not done:
                packed, told = answer
                cause = None if packed is None else pickle.loads(packed)  # noqa: S301 - packed by a process of ours
                raise self._error(f"{self._kind} {index} raised {told}") from cause
        return [answer for _, answer in answers]

    def close(self) -> None:
        """Ends the processes: at once those that still carry out an order."""
        for one in self._running:
            one.pipe.close()
            if self.waiting:
                one.process.kill()
        for one in self._running:
            one.process.join(_ENOUGH_SECONDS)
            if one.process.is_alive():
                one.process.kill()
                one.process.join()

    def _answer(self, index: int) -> tuple[bool, Any]:
        one = self._running[index]
        wait([one.pipe, one.process.sentinel])
        try:
            answer: tuple[bool, Any] = one.pipe.recv()
        except (EOFError, OSError) as error:
            raise self._dead(index) from error
        return answer

    def _dead(self, index: int) -> WorkerError:
        process = self._running[index].process
        process.join(_ENOUGH_SECONDS)
        code = process.exitcode or 0
        how = (
            f"was ended by {signal.Signals(-code).name}"
            if code < 0
            else f"ended with exit status {code}"
        )
        return self._error(
            f"{self._kind} {index} (process {process.pid}) {how}: its memory or its environment may be the cause"
        )


def _start(name: str, maker: Maker) -> _Running:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, maker), name=name, daemon=True)
    process.start()
    theirs.close()
    return _Running(process, ours)


def _serve(pipe: Connection, maker: Maker) -> None:
    """The process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    servant: Servant | None = None
    while True:
        try:
            order = pipe.recv()
        except EOFError:
            return
        try:
            servant = servant or maker()
            answer = (True, servant(order))
        except Exception as error:  # noqa: BLE001 - whatever somebody else's code raises goes to the parent
            told = f"{type(error).__name__}: {error}\n\n{traceback.format_exc()}"
            answer = (False, (packed_error(own_error(error)), told))
        pipe.send(answer)


def _end_with_parent() -> None:
    """Ends this process with its parent, even if an order is being carried out."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
