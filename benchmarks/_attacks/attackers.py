"""What an attacker does for some seconds, in a process of its own.

Each function returns how often each answer came.
"""

import itertools
import json
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import quote, urlencode

import redis

from palestra.contract.statistics import PARTS
from tests.support.server_fixture import make_definition

_TIMEOUT_SECONDS = 60.0
_SEEDS = 1_000
NEVER_TRAINED = "no-op"
"""Name of experiments whose attempts hold a slot without a trainer."""


@dataclass(frozen=True, slots=True)
class Attacked:
    """What an attacker knows of the server and its broker."""

    port: int
    token: str
    experiments: Sequence[str]
    broker_url: str
    """Of the attacker's own registered worker."""
    queues: Sequence[str]
    """Those of other workers, and the names of pools."""
    broker_admin_url: str
    """Stands for a fault of the broker, which no member can cause."""


Answers = Counter[str]
Attack = Callable[[Attacked, float], Answers]
Request = tuple[str, str, Any]
"""Method, path and body."""


def wait(_: Attacked, seconds: float) -> Answers:
    time.sleep(seconds)
    return Counter()


def use_other_queues(attacked: Attacked, seconds: float) -> Answers:
    """Writes to the queues of others, and takes from them, as the broker's user of a worker."""
    answers: Answers = Counter()
    end = time.monotonic() + seconds
    with redis.Redis.from_url(attacked.broker_url) as connection:
        while time.monotonic() < end:
            for queue, command in itertools.product(
                attacked.queues, (("SADD", "x"), ("LPUSH", "x"), ("BRPOP", "1"), ("DEL",))
            ):
                try:
                    connection.execute_command(command[0], queue, *command[1:])
                    answers["accepted"] += 1
                except redis.exceptions.NoPermissionError:
                    answers["NOPERM"] += 1
    return answers


def refuse_writes(attacked: Attacked, seconds: float) -> Answers:
    """Lets the broker refuse writes, half of the time for each reason."""
    pairs = (
        (("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0")),
        (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE")),
    )
    with redis.Redis.from_url(attacked.broker_admin_url) as connection:
        for refuse, allow in pairs:
            connection.execute_command(*refuse)
            # Workers notice a read-only broker when they connect anew.
            connection.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            time.sleep(seconds / 2)
            connection.execute_command(*allow)
    return Counter()


def read_lists(attacked: Attacked, seconds: float) -> Answers:
    """Filters all runs by 32 negated terms and sorts them by a series, 20 requests at once."""
    terms = " ".join(f"-agent.p{number % 20}:{number}" for number in range(32))
    query = urlencode({"filter": terms, "sort": "-series-3/x.last"}, quote_via=quote)
    return _repeat(attacked, seconds, 20, itertools.repeat(("GET", f"runs?{query}", None)))


def aggregate_statistics(attacked: Attacked, seconds: float) -> Answers:
    """Asks for statistics over 2,000 runs, 8 requests at once."""
    body = {"experiments": attacked.experiments[:200], "parts": PARTS}
    body |= {"resamples": 500, "curve_resamples": 100}
    request = ("POST", "statistics:aggregate", body)
    return _repeat(attacked, seconds, 8, itertools.repeat(request))


def export_records(attacked: Attacked, seconds: float) -> Answers:
    """Exports the points of 2,000 runs, 3 requests at once."""
    query = urlencode([("experiment", experiment) for experiment in attacked.experiments[:200]])
    path = f"records:export?{query}"
    return _repeat(attacked, seconds, 3, itertools.repeat(("GET", path, None)))


def submit_in_turn(attacked: Attacked, seconds: float) -> Answers:
    """Submits 1,000 seeds, and again."""
    return _repeat(attacked, seconds, 1, _generate_submissions())


def submit_at_once(attacked: Attacked, seconds: float) -> Answers:
    """Submits 1,000 seeds of four experiments at once, and again."""
    return _repeat(attacked, seconds, 4, _generate_submissions())


def submit_equal(attacked: Attacked, seconds: float) -> Answers:
    """Sends fifty equal submissions at once, and again."""
    definition = make_definition(name=NEVER_TRAINED, loop={"env_steps": 4_000_000})
    body = {"definition": definition, "options": {"seeds": list(range(_SEEDS))}}
    request = ("POST", "experiments", body)
    return _repeat(attacked, seconds, 50, itertools.repeat(request))


def cancel_jobs(attacked: Attacked, seconds: float) -> Answers:
    """Submits 1,000 seeds and cancels them by requests for many jobs, four at once."""
    selection = {"user": "me", "states": ["queued"]}
    cancel = ("POST", "jobs:act", {"action": "cancel", "selection": selection})
    requests = itertools.chain.from_iterable(
        zip(_generate_submissions(), *[itertools.repeat(cancel)] * 12, strict=False)
    )
    return _repeat(attacked, seconds, 4, requests)


def ask_anonymously(attacked: Attacked, seconds: float) -> Answers:
    """Asks for 1,000 unknown paths of each kind without a credential, as fast as possible."""
    kinds = ("/assets/{}", "/assets/{}.br", "/nowhere/{}", "/api/v1/{}", "/api/v1/runs/{}")
    paths = (kind.format(index) for index in range(_SEEDS) for kind in kinds)
    requests = (("GET", path, None) for path in itertools.cycle(paths))
    return _repeat(attacked, seconds, 4, requests, is_anonymous=True)


ATTACKS: dict[str, Attack] = {
    "none": wait,
    "1 queues of others": use_other_queues,
    "2 broker refuses writes": refuse_writes,
    "3 lists": read_lists,
    "3 statistics": aggregate_statistics,
    "3 exports": export_records,
    "4 submissions in turn": submit_in_turn,
    "4 submissions at once": submit_at_once,
    "4 equal submissions": submit_equal,
    "4 submissions, cancelled": cancel_jobs,
    "5 anonymous paths": ask_anonymously,
}


def make_submission(number: int, seeds: int) -> dict[str, Any]:
    """Returns the body of a submission of an experiment of that number."""
    definition = make_definition(name=NEVER_TRAINED, loop={"env_steps": 1_000 + number})
    return {"definition": definition, "options": {"seeds": list(range(seeds))}}


def _generate_submissions() -> Iterator[Request]:
    first = time.time_ns() // 1_000_000 % 1_000_000_000
    for number in itertools.count(first):
        yield "POST", "experiments", make_submission(number, _SEEDS)


def _repeat(
    attacked: Attacked,
    seconds: float,
    at_once: int,
    requests: Iterator[Request],
    *,
    is_anonymous: bool = False,
) -> Answers:
    """Sends requests over that many connections until the time is over."""
    answers: Answers = Counter()
    end, lock = time.monotonic() + seconds, threading.Lock()
    headers = {} if is_anonymous else {"Authorization": f"Bearer {attacked.token}"}

    def send_until_end() -> None:
        connection = HTTPConnection("127.0.0.1", attacked.port, timeout=_TIMEOUT_SECONDS)
        while time.monotonic() < end:
            with lock:
                method, path, body = next(requests)
            answer = send(connection, method, path, body, headers, end)
            with lock:
                answers[answer] += 1
        connection.close()

    with ThreadPoolExecutor(at_once) as threads:
        for sender in [threads.submit(send_until_end) for _ in range(at_once)]:
            sender.result()
    return answers


def send(
    connection: HTTPConnection,
    method: str,
    path: str,
    body: Any,
    headers: dict[str, str],
    end: float = math.inf,
) -> str:
    """Returns the status of an answer, or the name of the error that came in its place.

    The rest of an answer is left when the clock shows `end`.
    """
    content = None if body is None else json.dumps(body)
    kind = {} if body is None else {"Content-Type": "application/json"}
    try:
        address = path if path.startswith("/") else f"/api/v1/{path}"
        connection.request(method, address, content, {**headers, **kind})
        answer = connection.getresponse()
        while answer.read(2**16) and not answer.isclosed():
            if time.monotonic() > end:
                connection.close()
                return f"{answer.status} in part"
    except (OSError, HTTPException) as error:
        connection.close()
        return type(error).__name__
    return str(answer.status)
