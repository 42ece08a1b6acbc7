"""A real worker, some of whose attempts hold their slot for a while without a trainer.

    python -m tests.support.holding_worker [options of workers.host]

Registration, heartbeats, Celery, slots and claims are those of `workers.host`. Where the name of an
experiment begins with `no-op`, the locks of its slots go to one process that holds them for a time
drawn between the two numbers of `PALESTRA_TEST_HOLD_SECONDS`, or for the seconds that follow in the
name, then releases the attempt, as a supervisor does: the report first, the locks after it. Every
other attempt trains. `PALESTRA_TEST_CLAIM_SECONDS` is the time for which a claim is repeated.
"""

import heapq
import json
import os
import random
import re
import signal
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx

from palestra.contract.states import Cause, Outcome
from palestra.contract.work_order import AttemptReport, Release
from workers.host import dispatch_task, worker
from workers.host.supervisor_start import SupervisorStart, start_supervisor
from workers.ipc.attempt_directory import AttemptDirectory, write_identity
from workers.ipc.process_tree import identify

_HELD_NAME: Final = re.compile(r"no-op(?: (?P<seconds>[0-9.]+) s)?")
HOLD_VARIABLE: Final = "PALESTRA_TEST_HOLD_SECONDS"
CLAIM_VARIABLE: Final = "PALESTRA_TEST_CLAIM_SECONDS"
_MESSAGE_BYTES: Final = 16_384
_MAX_SLOTS: Final = 64
_THREADS: Final = 4
_RETRY_SECONDS: Final = 0.2
_NOT_AGAIN: Final = range(400, 500)


class Holder:
    """Holds slots and releases attempts, in a process of its own.

    Args:
        inbox: Receives one message with the descriptors of its slots for each attempt.
    """

    def __init__(self, inbox: socket.socket) -> None:
        self._inbox = inbox
        self._due: list[tuple[float, list[int], dict[str, Any]]] = []
        self._pool = ThreadPoolExecutor(_THREADS)
        # No certificates are read, and connections are kept.
        self._client = httpx.Client(verify=False, trust_env=False, timeout=20)
        self._changed = threading.Condition()

    def run(self) -> None:
        """Receives attempts until the worker has ended."""
        threading.Thread(target=self._release_due, daemon=True).start()
        while True:
            message, descriptors, _, _ = socket.recv_fds(self._inbox, _MESSAGE_BYTES, _MAX_SLOTS)
            if not message:
                return
            order = json.loads(message)
            with self._changed:
                heapq.heappush(self._due, (order["until"], descriptors, order))
                self._changed.notify()

    def _release_due(self) -> None:
        while True:
            with self._changed:
                while not self._due or self._due[0][0] > time.monotonic():
                    wait = self._due[0][0] - time.monotonic() if self._due else None
                    self._changed.wait(wait)
                _, descriptors, order = heapq.heappop(self._due)
            self._pool.submit(self._release, descriptors, order)

    def _release(self, descriptors: list[int], order: dict[str, Any]) -> None:
        report = AttemptReport(outcome=Outcome.SUCCEEDED, cause=Cause.BUDGET)
        body = Release(report=report, last_seq=0).model_dump_json()
        headers = {
            "Authorization": f"Bearer {order['token']}",
            "Content-Type": "application/json",
        }
        directory = AttemptDirectory(Path(order["directory"]))
        path = f"{order['server']}/api/v1/leases/{directory.attempt_id}:release"
        while not self._is_told(path, body, headers):
            time.sleep(_RETRY_SECONDS)
        directory.released.touch()
        for descriptor in descriptors:
            os.close(descriptor)

    def _is_told(self, path: str, body: str, headers: dict[str, str]) -> bool:
        try:
            status = self._client.post(path, content=body, headers=headers).status_code
        except httpx.HTTPError:
            return False
        return status == httpx.codes.OK or status in _NOT_AGAIN


class HeldStart:
    """Replaces `start_supervisor` in the processes of the Celery pool.

    Args:
        outbox: The other end of the holder's inbox.
        holder: Process ID of the holder.
    """

    def __init__(self, outbox: socket.socket, holder: int) -> None:
        self._outbox = outbox
        self._holder = identify(holder)
        low, high = os.environ.get(HOLD_VARIABLE, "0,0").split(",")
        self._bounds = float(low), float(high)

    def __call__(self, start: SupervisorStart) -> None:
        """Passes the slots of a held attempt to the holder, or starts a supervisor."""
        order = json.loads(start.directory.work_order.read_bytes())
        held = _HELD_NAME.match(str(order["definition"].get("name", "")))
        if held is None:
            start_supervisor(start)
            return
        write_identity(start.directory.supervisor_pid, self._holder)
        fixed = held["seconds"]
        seconds = random.uniform(*self._bounds) if fixed is None else float(fixed)
        message = {
            "directory": str(start.directory.root),
            "server": start.credentials.server,
            "token": start.credentials.token,
            "until": time.monotonic() + seconds,
        }
        socket.send_fds(self._outbox, [json.dumps(message).encode()], start.slots.descriptors)


def main() -> int:
    """Runs the worker, with the holder beside it."""
    inbox, outbox = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    holder = os.fork()
    if holder == 0:
        outbox.close()
        # The worker's processes get signals; the holder ends once all of them have.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        Holder(inbox).run()
        os._exit(0)
    inbox.close()
    setattr(dispatch_task, "start_supervisor", HeldStart(outbox, holder))  # noqa: B010
    if seconds := os.environ.get(CLAIM_VARIABLE):
        settings = partial(dispatch_task.DispatchTaskSettings, claim_seconds=float(seconds))
        setattr(worker, "DispatchTaskSettings", settings)  # noqa: B010
    return worker.main()


if __name__ == "__main__":
    sys.exit(main())
