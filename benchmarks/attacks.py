"""Attacks on a server: how long other requests wait beside bodies and incomplete requests.

Sends every body that is expensive to read to every route that has a body, then opens incomplete
requests from many addresses, and sends small requests from another address meanwhile. Uses only
the loopback interface. The exit code is 1 if a request is delayed too long.

    python -m benchmarks.attacks
"""

import contextlib
import http.client
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx
import psutil

from benchmarks._report import describe_machine
from tests.security import bodies, slow
from tests.security.target import Target, send

MAX_DELAY = 0.25
"""Longest time in seconds for which one request may delay another."""
MAX_SHARE = 0.5
"""Largest processor time of an anonymous request, as a share of that of `GET /api/v1/session`."""
SLOW = 2_000
PATHS = 1_000
"""Unknown paths and requests of a person of which the processor time is compared."""


def get_unscheduled_seconds(pid: int) -> float:
    """Returns the seconds for which a process was ready to run but not scheduled (Linux).

    It is the sum for the main thread and for the other thread with the longest time, which may have
    held the interpreter lock.
    """
    delays = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError, ValueError):
            _, delay, _ = (task / "schedstat").read_text().split()
            delays[int(task.name)] = int(delay) / 1e9
    return delays.pop(pid, 0.0) + max(delays.values(), default=0.0)


@dataclass
class LatencyProbe:
    """Sends small requests to the server repeatedly, from another address.

    Records how long each answer takes. Time for which other programs used the processors is not
    counted, since other tests run at the same time.
    """

    target: Target
    path: str = "/api/v1/session"
    host: str = "127.0.0.9"
    waits: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @contextmanager
    def watch(self) -> Iterator["LatencyProbe"]:
        """Measures waiting times while the block runs."""
        self.waits, self.failures = [], []
        ended = threading.Event()
        thread = threading.Thread(target=self._ask, args=(ended,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            ended.set()
            thread.join(60)

    @property
    def longest(self) -> float:
        """The longest waiting time in seconds."""
        return max(self.waits, default=float("inf"))

    def _ask(self, ended: threading.Event) -> None:
        connection = self._connect()
        while not ended.is_set():
            began = self._get_processor_time()
            try:
                connection.request("GET", self.path, headers=self._headers)
                answer = connection.getresponse()
                answer.read()
                if answer.status != httpx.codes.OK:
                    self.failures.append(f"status {answer.status}")
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(type(error).__name__)
                connection.close()
                connection = self._connect()
            self.waits.append(self._get_processor_time() - began)
            ended.wait(0.005)
        connection.close()

    def _get_processor_time(self) -> float:
        served = get_unscheduled_seconds(self.target.processes["server"].pid)
        return time.perf_counter() - served - get_unscheduled_seconds(os.getpid())

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.target.tokens['user']}"}

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(
            "127.0.0.1", self.target.port, timeout=30, source_address=(self.host, 0)
        )


def measure_delay(witness: LatencyProbe, attack: Callable[[], object], *, tries: int = 4) -> float:
    """Returns the seconds for which other clients waited while `attack` ran.

    It is the minimum of several tries, since a busy machine delays other clients too.
    """
    least = float("inf")
    for _ in range(tries):
        with witness.watch():
            time.sleep(0.02)
            attack()
        assert not witness.failures, witness.failures[:3]
        least = min(least, witness.longest)
        if least <= MAX_DELAY:
            break
    return least


def main() -> int:
    """Runs every attack and prints how long other clients had to wait."""
    print(describe_machine())
    with tempfile.TemporaryDirectory(prefix="palestra-attack-") as directory:
        share = _ask_for_paths(Path(directory) / "paths")
        longest = [
            _send_bodies(Path(directory) / "bodies"),
            _hold_connections(Path(directory) / "slow"),
        ]
    return 0 if max(longest) <= MAX_DELAY and share <= MAX_SHARE else 1


def _ask_for_paths(directory: Path) -> float:
    """Asks without a credential for paths that nothing is at.

    Returns the largest processor time of the server as a share of that of `GET /api/v1/session`.
    """
    with Target(directory) as target:
        process = psutil.Process(target.processes["server"].pid)

        def measure(path: str, headers: Mapping[str, str], method: str = "GET") -> float:
            connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=30)
            before = sum(process.cpu_times()[:2])
            for index in range(PATHS):
                connection.request(method, path.format(index), headers=headers)
                connection.getresponse().read()
            connection.close()
            return 1_000 * (sum(process.cpu_times()[:2]) - before) / PATHS

        person = {"Authorization": f"Bearer {target.tokens['user']}"}
        measure("/api/v1/session", person)
        session = measure("/api/v1/session", person)
        print(f"{session:6.2f} ms  of the processor for GET /api/v1/session of a person")
        longest = 0.0
        for request, headers in (
            ("GET /assets/{}", {}),
            ("GET /assets/{}.br", {}),
            ("GET /nowhere/{}", {}),
            ("GET /nowhere/{}", {"Accept": "text/html"}),
            ("GET /api/v1/{}", {}),
            ("GET /api/v1/runs/{}", {}),
            ("GET /api/v1/session", {}),
            ("OPTIONS /api/v1/jobs", {}),
            ("GET /healthz", {}),
            ("DELETE /healthz", {}),
            ("GET /readyz", {}),
        ):
            method, _, path = request.partition(" ")
            spent = measure(path, headers, method)
            longest = max(longest, spent)
            print(f"{spent:6.2f} ms  for {request} {headers.get('Accept', '')} of nobody")
    return longest / session


def _send_bodies(directory: Path) -> float:
    worst = 0.0
    with Target(directory) as target:
        witness = LatencyProbe(target)
        for attack in [*bodies.yield_documents(target.names), *bodies.yield_malformed_bodies()]:
            held = measure_delay(
                witness, partial(send, target, attack.method, attack.path, attack.body, attack.who)
            )
            worst = max(worst, held)
            print(f"{held * 1_000:6.0f} ms  {len(attack.body):9,} B  {attack.name}")
    print(f"{worst * 1_000:6.0f} ms  the longest that one body held others")
    return worst


def _hold_connections(directory: Path) -> float:
    """Opens incomplete requests from many addresses and keeps them open.

    Returns the seconds for which a request from another address waits meanwhile.
    """
    with Target(directory) as target:
        witness = LatencyProbe(target)
        with slow.send_half_requests(target.port, SLOW, 250), witness.watch():
            time.sleep(10)
        served, failed = len(witness.waits), len(witness.failures)
    print(
        f"{witness.longest * 1_000:6.0f} ms  the longest beside {SLOW} half-sent "
        f"requests; {served} served, {failed} failed"
    )
    return float("inf") if failed else witness.longest


if __name__ == "__main__":
    sys.exit(main())
