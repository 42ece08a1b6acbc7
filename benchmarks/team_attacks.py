"""What one member's attack costs the others: a server under attack beside a training and a person.

A server with its daemons, a broker with users, and a worker that trains run as processes, and the
database holds finished runs. During each attack, which runs in a process of its own, another person
asks four times a second for `/readyz` and for a list, and submits an experiment once a second. An
answer is timed from the moment at which its request was due. The exit code is 1 if the 99th
percentile of answers or a transaction of the server that writes takes more than a second, if a
request of the person fails, or if the training's telemetry or lease ends.

All processes share the processors of one machine.

    python -m benchmarks.team_attacks [--database postgresql] [--seconds 20] [--runs 10000]
        [--only TEXT]
"""

import argparse
import itertools
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection
from multiprocessing import get_context
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import httpx

from benchmarks._attacks.attackers import (
    ATTACKS,
    NEVER_TRAINED,
    Answers,
    Attacked,
    make_submission,
    send,
)
from benchmarks._attacks.content import Content, fill
from benchmarks._attacks.timed_server import Transaction, read_transactions
from benchmarks._report import align_columns, describe_machine, find_quantile
from benchmarks.audit_log import database_url
from palestra.cli.embedded.broker_users import build_user_lines
from palestra.contract.names import worker_queue
from tests.e2e.run_history import get_live_attempt, make_slow_definition
from tests.support.process_stack import REPOSITORY, Stack
from tests.support.server_fixture import registration
from tests.support.valkey import ADMIN_PASSWORD, Valkey
from tests.support.waiting import wait_for

BOUND_SECONDS: Final = 1.0
RATES: Final = {"readyz": 4.0, "list": 4.0, "submit": 1.0}
"""Requests a second of each kind that the person sends."""
SERVER_PASSWORD: Final = "password-of-server"
ATTACKERS_POOL: Final = "attackers"


class Team(Stack):
    """A stack with a timed server, users of the broker, and a worker with four slots.

    The worker has the environment `SlowPole-v0`, and holds slots for attempts named `no-op`.
    """

    def __init__(self, directory: Path, url: str) -> None:
        site = directory / "site"
        site.mkdir()
        shutil.copy(REPOSITORY / "tests" / "support" / "slow_pole.py", site)
        worker = {"PYTHONPATH": str(site), "PALESTRA_TEST_HOLD_SECONDS": "2,6"}
        super().__init__(directory, slots=4, database_url=url, worker=worker)
        self.broker = Valkey(directory, build_user_lines(SERVER_PASSWORD), port=self.broker_port)
        self._environment["PALESTRA_BROKER_URL"] = self.broker.get_url("server", SERVER_PASSWORD)
        self.transactions = directory / "transactions"
        self.worker_module = "tests.support.holding_worker"
        self.worker_options = ["--import", "slow_pole"]

    def start_broker(self) -> None:
        """Starts the broker with the server's user."""
        self.broker.start()

    def start_server(self) -> None:
        """Starts the timed server and waits until it is ready."""
        module = "benchmarks._attacks.timed_server"
        self._start("server", [sys.executable, "-m", module, str(self.transactions)])
        wait_for(self.is_server_ready, lambda: f"the server is ready\n{self.log('server')}")

    def __exit__(self, *arguments: object) -> None:
        super().__exit__(*arguments)
        self.broker.close()

    def describe(self, content: Content) -> Attacked:
        """Registers a worker of the attacker in another pool; returns what the attacker knows."""
        self.add_pool(ATTACKERS_POOL)
        own = registration(name="attacker", pool=ATTACKERS_POOL).model_dump_json()
        token = (self.directory / f"{ATTACKERS_POOL}.token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        answer = httpx.post(f"{self.url}/api/v1/workers", content=own, headers=headers)
        assert answer.is_success, answer.text
        other = worker_queue("default", self.get_worker()["id"])
        return Attacked(
            self.port,
            content.token,
            content.experiments,
            answer.json()["broker_url"],
            (other, f"_kombu.binding.{other}", "palestra.pool.default"),
            self.broker.get_url("admin", ADMIN_PASSWORD),
        )

    def cancel_queued_jobs(self) -> None:
        """Cancels all queued jobs."""
        body = {"action": "cancel", "selection": {"states": ["queued"]}, "after": ""}
        while body["after"] is not None:
            body["after"] = self.post("jobs:act", body)["next_after"]


@dataclass
class Person:
    """Another person, who sends requests of three kinds at a fixed rate."""

    port: int
    token: str
    seconds: dict[str, list[float]] = field(default_factory=dict)
    failures: Answers = field(default_factory=Counter)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(100_000_000))

    @contextmanager
    def ask(self) -> Iterator[None]:
        """Sends requests while the block runs."""
        kinds: dict[str, Callable[[], tuple[str, str, Any]]] = {
            "readyz": lambda: ("GET", "/readyz", None),
            "list": lambda: ("GET", "runs?sort=-evaluation/mean.best&limit=100", None),
            "submit": lambda: ("POST", "experiments", make_submission(next(self._numbers), 1)),
        }
        self.seconds, self.failures = {kind: [] for kind in kinds}, Counter()
        ended = threading.Event()
        threads = [
            threading.Thread(target=self._repeat, args=(kind, make, ended))
            for kind, make in kinds.items()
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            ended.set()
            for thread in threads:
                thread.join()

    def _repeat(self, kind: str, make: Callable[[], Any], ended: threading.Event) -> None:
        headers = {"Authorization": f"Bearer {self.token}"}
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        due = time.monotonic()
        while not ended.wait(max(0.0, due - time.monotonic())):
            method, path, body = make()
            answer = send(connection, method, path, body, headers)
            self.seconds[kind].append(time.monotonic() - due)
            if not answer.startswith("2"):
                self.failures[f"{kind} {answer}"] += 1
            due += 1 / RATES[kind]
        connection.close()


@dataclass(frozen=True)
class Result:
    """What an attack cost the others."""

    name: str
    answers: Answers
    person: Person
    env_steps: int
    """Env_steps of the training that arrived meanwhile."""
    is_same_attempt: bool
    longest: Transaction

    @property
    def is_within(self) -> bool:
        """Whether everything stayed within its bound."""
        slowest = max(find_quantile(values, 0.99) for values in self.person.seconds.values())
        return (
            max(slowest, self.longest.seconds) <= BOUND_SECONDS
            and self.env_steps > 0
            and self.is_same_attempt
            and not self.person.failures
        )

    def format(self) -> list[str]:
        """Returns the cells of this result's row."""
        return [
            self.name,
            _format_counts(self.answers),
            *(_format_spread(values) for values in self.person.seconds.values()),
            _format_counts(self.person.failures),
            f"{self.env_steps:+,}",
            "same" if self.is_same_attempt else "LOST",
            f"{1e3 * self.longest.seconds:.0f} {self.longest.unit}",
            "ok" if self.is_within else "NOT WITHIN",
        ]


HEAD: Final = (
    "attack", "its answers", "readyz, ms: p50 / p99 / max", "list", "submit", "not 2xx",
    "env_steps", "attempt", "longest transaction, ms", "",
)  # fmt: skip


def _format_spread(values: Sequence[float]) -> str:
    spread = statistics.median(values), find_quantile(values, 0.99), max(values)
    return " / ".join(f"{1e3 * value:.0f}" for value in spread)


def _format_counts(counts: Answers) -> str:
    return ", ".join(f"{answer}: {count:,}" for answer, count in sorted(counts.items())) or "-"


def measure(team: Team, content: Content, seconds: float, only: str) -> list[Result]:
    """Runs the attacks one after the other beside a training."""
    attacked = team.describe(content)
    (run,) = team.submit(make_slow_definition(team, 10_000_000), seeds=[0])
    training = partial(read_training, team, run["id"])
    _, attempt = wait_for(partial(training, 0), "the run trains")
    results = []
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        process.submit(os.getpid).result()  # It has started and imported everything then.
        for name, attack in ATTACKS.items():
            if only not in name:
                continue
            person = Person(team.port, team.tokens["user"])
            first, _ = wait_for(partial(training, 0), "the run trains")
            begun = time.time()
            with person.ask():
                answers = process.submit(attack, attacked, seconds).result()
            longest = _find_longest(team.transactions, begun)
            last, present = wait_for(partial(training, 0), "the run trains")
            result = Result(name, answers, person, last - first, present == attempt, longest)
            print(align_columns([HEAD, result.format()]), flush=True)
            results.append(result)
            team.cancel_queued_jobs()
            start_job(team)
    return results


def read_training(team: Team, run_id: str, env_step: int) -> tuple[int, str] | None:
    """Returns the newest env_step of a run and its live attempt; `None` before an env_step."""
    try:
        run = team.get(f"runs/{run_id}")
    except httpx.HTTPStatusError:
        return None
    live = get_live_attempt(team, run_id)
    newest = run["progress"]["env_step"]
    return (newest, live["id"]) if live is not None and newest > env_step else None


def _find_longest(file: Path, begun: float) -> Transaction:
    ended = [noted for noted in read_transactions(file) if noted.ended_at >= begun]
    return max(ended, key=attrgetter("seconds"), default=Transaction("-", 0.0, 0.0))


def start_job(team: Team) -> None:
    """Submits a job and waits until it has started."""
    (run,) = team.submit(make_submission(time.time_ns() % 10**9, 1)["definition"])
    team.wait_for_run(
        run["id"],
        lambda run: run["state"] in {"running", "succeeded"},
        f"a job named {NEVER_TRAINED} starts",
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--seconds", type=float, default=20, help="of each attack")
    parser.add_argument("--runs", type=int, default=10_000, help="that the database holds")
    parser.add_argument("--only", default="", help="attacks whose names hold this")
    values = parser.parse_args()
    load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
    print(f"{describe_machine()}, shared by server, worker, attacker and person; load {load}")
    with (
        database_url(values.database) as url,
        tempfile.TemporaryDirectory(prefix="plr-", dir="/tmp") as directory,
    ):
        content = fill(url, values.runs)
        with Team(Path(directory), url) as team:
            results = measure(team, content, values.seconds, values.only)
    print(f"{values.database}, {values.runs:,} runs, attacks of {values.seconds:g} s")
    print(align_columns([HEAD, *(result.format() for result in results)]))
    return 0 if all(result.is_within for result in results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
