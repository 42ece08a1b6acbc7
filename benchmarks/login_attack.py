"""Attacks by password guessing: how many guesses reach argon2, and whether users can log in.

Three attacks on a real server behind a trusted proxy: at one account from many addresses, at many
accounts from one address, and at many accounts from many addresses. During each, a person logs in
by password in a known browser, and by links. Then the times of refusals are compared for known
and unknown names, where argon2 ran and where the limits refused before it.

    python -m benchmarks.login_attack [--guesses 10000] [--times 2000]
"""

import argparse
import asyncio
import itertools
import json
import random
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

from argon2 import PasswordHasher

from app.db.engine import Database
from app.db.models import UserRow
from app.domain.login_limits import MAX_WAITING, PER_ACCOUNT, PER_ADDRESS, Allowance
from benchmarks._report import align_columns, describe_machine
from palestra.contract.names import new_id
from tests.security.target import Target

PASSWORD = "a long enough password"
LAB = "203.0.113.7"
"""Address of the person's laboratory, from which the second attack comes too."""
USERS = 250
LINKS = 8
CONNECTIONS = 16
BOUND = 1.05
_TODAYS = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)
_CHEAPER = PasswordHasher(time_cost=1, memory_cost=8_192, parallelism=1)


@dataclass(frozen=True)
class Attempt:
    """One login and the address that the trusted proxy names for it."""

    user: str
    address: str
    password: str = "wrong guess"
    cookie: str = ""


@dataclass
class AttackResult:
    """The answers to the guesses of an attack, and the durations of the person's own logins."""

    name: str
    allowance: Allowance | None = None
    """Guesses that may reach argon2; `None` where only the queue before argon2 is bounded."""
    seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    known_browser: list[float] = field(default_factory=list)
    link: list[float] = field(default_factory=list)
    kept_out: int = 0

    @property
    def most_guesses(self) -> float:
        """Guesses that may reach argon2 within the attack's time."""
        if self.allowance is None:
            return float("inf")
        return self.allowance.at_once + self.seconds // self.allowance.seconds

    @property
    def bound(self) -> str:
        """The documented bound on guesses, as a phrase for the table."""
        if self.allowance is None:
            return f"{MAX_WAITING} at a time"
        return f"{self.allowance.at_once} + 1 per {self.allowance.seconds:g} s"

    @property
    def is_within(self) -> bool:
        """Whether the bound held and the person logged in each time."""
        expected = set(self.statuses) <= {401, 429, 503}
        got_in = bool(self.known_browser and self.link) and not self.kept_out
        return expected and got_in and self.statuses[401] <= self.most_guesses


class Server(Target):
    """The attacked server, whose users `today0` and `old0` have passwords.

    The hash of `old0` has cheaper parameters, as an older version would have stored it.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, settings={"PALESTRA_TRUSTED_PROXIES": "127.0.0.1"})
        self.codes: list[str] = []

    def prepare(self) -> None:
        """Adds the users, before the server starts."""
        super().prepare()
        asyncio.run(_add_users(f"sqlite:///{self.directory / 'palestra.db'}"))

    def make_links(self) -> None:
        """Makes login links of the administrator for the next attack."""
        made = [json.loads(self.run("app.admin", "login-link")) for _ in range(LINKS)]
        self.codes = [link["code"] for link in made]

    def post_json(
        self,
        connection: HTTPConnection,
        path: str,
        body: object,
        headers: dict[str, str],
    ) -> HTTPResponse:
        """Returns the answer to a request on a connection, its body read."""
        content = {"Content-Type": "application/json", **headers}
        connection.request("POST", f"/api/v1/{path}", json.dumps(body), content)
        answer = connection.getresponse()
        answer.read()
        return answer

    def log_in(self, connection: HTTPConnection, attempt: Attempt) -> HTTPResponse:
        """Returns the answer to a login by password through the proxy."""
        headers = {"X-Forwarded-For": attempt.address}
        if attempt.cookie:
            headers["Cookie"] = f"palestra_device={attempt.cookie}"
        body = {"user": attempt.user, "password": attempt.password}
        return self.post_json(connection, "session", body, headers)

    def redeem(self, connection: HTTPConnection, **body: str) -> str:
        """Logs the person in by a link; returns the browser's new cookie, empty if refused."""
        answer = self.post_json(connection, "session:redeem", body, {"X-Forwarded-For": LAB})
        return _device_cookie(answer) if answer.status == HTTPStatus.CREATED else ""

    @contextmanager
    def connect(self) -> Iterator[HTTPConnection]:
        """Opens a connection from the proxy to the server."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            yield connection
        finally:
            connection.close()


async def _add_users(url: str) -> None:
    database = Database(url)
    hashes = {"today": _TODAYS.hash(PASSWORD), "old": _CHEAPER.hash(PASSWORD)}
    async with database.write() as session:
        session.add_all(
            UserRow(id=new_id("usr"), name=f"{kind}{index}", password_hash=stored)
            for kind, stored in hashes.items()
            for index in range(USERS)
        )
    await database.dispose()


def _device_cookie(answer: HTTPResponse) -> str:
    cookies = answer.headers.get_all("Set-Cookie") or []
    return next(
        text.partition("=")[2].partition(";")[0]
        for text in cookies
        if text.startswith("palestra_device=")
    )


def _generate_addresses() -> Iterator[str]:
    """Yields addresses of different subscribers, every other one of IPv6."""
    for index in itertools.count():
        yield f"100.{64 + index // 65_536}.{index // 256 % 256}.{index % 256}"
        yield f"2001:db8:{index // 65_536:x}:{index % 65_536:x}::1"


def _send_attack(
    server: Server, cookie: str, attempts: Iterable[Attempt], tally: AttackResult
) -> str:
    """Sends the guesses over several connections while the person logs in; returns a cookie."""
    server.make_links()
    rest, lock, ended = iter(attempts), threading.Lock(), threading.Event()

    def guess() -> None:
        with server.connect() as connection:
            while True:
                with lock:
                    attempt = next(rest, None)
                if attempt is None:
                    return
                status = server.log_in(connection, attempt).status
                with lock:
                    tally.statuses[status] += 1

    def get_in() -> str:
        last = cookie
        with server.connect() as connection:
            while not ended.wait(0.5):
                began = time.perf_counter()
                answer = server.log_in(connection, Attempt("admin", LAB, PASSWORD, last))
                if answer.status == HTTPStatus.CREATED:
                    tally.known_browser.append(time.perf_counter() - began)
                    last = _device_cookie(answer)
                else:
                    tally.kept_out += 1
                if server.codes:
                    began = time.perf_counter()
                    if server.redeem(connection, code=server.codes.pop()):
                        tally.link.append(time.perf_counter() - began)
                    else:
                        tally.kept_out += 1
        return last

    began = time.monotonic()
    with ThreadPoolExecutor(CONNECTIONS + 1) as threads:
        person = threads.submit(get_in)
        for done in [threads.submit(guess) for _ in range(CONNECTIONS)]:
            done.result()
        tally.seconds = time.monotonic() - began
        ended.set()
        return person.result()


def _attack_in_turn(server: Server, cookie: str, guesses: int) -> list[AttackResult]:
    names = [f"today{index % USERS}" if index % 2 else f"name{index}" for index in range(guesses)]
    addresses = list(itertools.islice(_generate_addresses(), guesses))
    attacks = [
        (
            AttackResult("one account, many addresses", PER_ACCOUNT),
            [Attempt("admin", text) for text in addresses],
        ),
        (
            AttackResult("many accounts, one address", PER_ADDRESS),
            [Attempt(name, f"{text}, {LAB}") for name, text in zip(names, addresses, strict=True)],
        ),
        (
            AttackResult("many accounts, many addresses"),
            [Attempt(name, text) for name, text in zip(names, addresses, strict=True)],
        ),
    ]
    for tally, attempts in attacks:
        cookie = _send_attack(server, cookie, attempts, tally)
    return [tally for tally, _ in attacks]


def _time_verified(server: Server, times: int) -> dict[str, list[float]]:
    """Returns the seconds of interleaved wrong logins that reach argon2, by kind of name."""
    each = min(times // 2, USERS * (PER_ACCOUNT.at_once - 1))
    attempts = [
        (kind, f"{kind}{index % USERS if kind != 'unknown' else index}")
        for kind in ("today", "old", "unknown")
        for index in range(each)
    ]
    random.Random(0).shuffle(attempts)
    rest, lock = zip(attempts, _generate_addresses(), strict=False), threading.Lock()
    spent: dict[str, list[float]] = {"today": [], "old": [], "unknown": []}

    def guess() -> None:
        with server.connect() as connection:
            while True:
                with lock:
                    found = next(rest, None)
                if found is None:
                    return
                (kind, name), address = found
                began = time.perf_counter()
                answer = server.log_in(connection, Attempt(name, address))
                seconds = time.perf_counter() - began
                assert answer.status == HTTPStatus.UNAUTHORIZED, (kind, answer.status)
                with lock:
                    spent[kind].append(seconds)

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(guess) for _ in range(4)]:
            done.result()
    return spent


def _time_refused(server: Server, times: int) -> dict[str, list[float]]:
    """Returns the seconds of interleaved logins that the limits refuse, by kind of name."""
    names = {"today": "admin", "unknown": "nobody"}
    spent: dict[str, list[float]] = {kind: [] for kind in names}
    order = [kind for kind in names for _ in range(times // 2)]
    random.Random(0).shuffle(order)
    addresses = _generate_addresses()
    with server.connect() as connection:
        for name in names.values():
            while server.log_in(connection, Attempt(name, next(addresses))).status != 429:
                pass
        for kind in order:
            attempt = Attempt(names[kind], next(addresses))
            began = time.perf_counter()
            answer = server.log_in(connection, attempt)
            spent[kind].append(time.perf_counter() - began)
            # Once a minute a guess is due, which is verified.
            if answer.status != HTTPStatus.TOO_MANY_REQUESTS:
                spent[kind].pop()
    return spent


def _print_attacks(tallies: list[AttackResult]) -> None:
    head = "attack|guesses|refused before argon2|reached argon2|bound|seconds"
    person = "known browser, s: median (max, n)|link, s: median (max, n)|kept out|"
    rows = [f"{head}|{person}".split("|")]
    for tally in tallies:
        refused = tally.statuses[429] + tally.statuses[503]
        rows.append(
            [
                tally.name,
                f"{tally.statuses.total():,}",
                f"{refused:,}",
                f"{tally.statuses[401]:,}",
                tally.bound,
                f"{tally.seconds:.1f}",
                _spread(tally.known_browser),
                _spread(tally.link),
                str(tally.kept_out),
                "ok" if tally.is_within else "NOT WITHIN",
            ]
        )
    print(align_columns(rows))


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.3f} ({max(values):.3f}, {len(values)})" if values else "-"


def _print_times(title: str, spent: dict[str, list[float]]) -> bool:
    """Prints the median of each kind of name; returns whether they are within the bound."""
    medians = {kind: statistics.median(values) for kind, values in spent.items()}
    ratio = max(medians.values()) / min(medians.values())
    shown = ", ".join(
        f"{kind} {medians[kind] * 1_000:.3f} ms (n {len(values):,})"
        for kind, values in spent.items()
    )
    comparison = "ok" if ratio < BOUND else f"OVER {BOUND:g}"
    print(f"{title}: {shown}; greatest ratio {ratio:.4f}  {comparison}")
    return ratio < BOUND


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--guesses", type=int, default=10_000, help="guesses of each attack")
    parser.add_argument("--times", type=int, default=2_000, help="requests of two kinds of names")
    arguments = parser.parse_args()
    print(describe_machine())
    with (
        tempfile.TemporaryDirectory(prefix="plr-", dir="/tmp") as directory,
        Server(Path(directory)) as server,
    ):
        verified = _time_verified(server, arguments.times)
        refused = _time_refused(server, arguments.times)
        with server.connect() as connection:
            code = server.login_url.partition("#code=")[2]
            cookie = server.redeem(connection, code=code, user="admin", password=PASSWORD)
        # A restart resets the counts, so that each attack begins with full allowances.
        server.kill("server")
        server.start_server()
        tallies = _attack_in_turn(server, cookie, arguments.guesses)
    _print_attacks(tallies)
    is_even = [
        _print_times("wrong password, verified", verified),
        _print_times("refused by the limits", refused),
    ]
    return 0 if all(is_even) and all(tally.is_within for tally in tallies) else 1


if __name__ == "__main__":
    raise SystemExit(main())
