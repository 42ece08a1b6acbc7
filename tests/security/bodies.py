"""Request bodies that are expensive to read, up to the size limit of every route that
has a body.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from app.api.openapi import list_api_routes, need_of
from app.api.query import iterate_dependencies
from app.api.strict_body import JsonBody
from app.main import create_app
from app.settings import Settings
from palestra.contract.work_order import WORK_ORDER_VERSIONS
from tests.security.target import encode_shortest_json
from tests.support.records import make_log, make_points
from tests.support.server_fixture import make_catalogue, make_definition


class Attack(NamedTuple):
    name: str
    method: str
    path: str
    who: str
    body: bytes


_WHO = {
    "enrolment": "worker",
    "worker secret": "own_worker",
    "attempt": "attempt",
    None: "anonymous",
}
_PLACEHOLDERS = {
    "run_id": "{run}",
    "job_id": "{job}",
    "attempt_id": "{attempt}",
    "worker_id": "{worker}",
}
"""What a target has an object of; other parameters of paths are filled with any text."""


def list_routes() -> list[tuple[str, str, str, int]]:
    """Returns method, path, credential and size limit in bytes of every route that has a body."""
    found = []
    settings = Settings()
    for context in list_api_routes(create_app(settings)):
        calls = [
            part.call
            for each in context.dependant.dependencies
            for part in iterate_dependencies(each)
        ]
        limits = [call.limit for call in calls if isinstance(call, JsonBody)]
        for method in context.methods or () if limits else ():
            path = re.sub(
                r"\{(\w+)\}", lambda match: _PLACEHOLDERS.get(match[1], "any"), context.path or ""
            )
            who = _WHO.get(need_of(context), "user")
            found.append((method, path, who, limits[0] or settings.max_body_bytes))
    assert len(found) > 12
    return sorted(found)


def _fill_body(head: bytes, item: bytes, tail: bytes, size: int) -> bytes:
    return head + item * ((size - len(head) - len(tail)) // len(item)) + tail


def _make_unknown_keys(size: int) -> bytes:
    return b"{" + b",".join(b'"%x":0' % index for index in range(size // 12)) + b"}"


def _make_repeated_key(size: int) -> bytes:
    keys = (b'"%x":0' % index for index in range(size // 12))
    return b"{" + b",".join(keys) + b',"0":0}'


def _make_near_names(size: int) -> bytes:
    keys = (b'"definitio%x":0' % index for index in range(min(1_999, size // 24)))
    return b"{" + b",".join(keys) + b"}"


FORMS: dict[str, Callable[[int], bytes]] = {
    "unknown keys": _make_unknown_keys,
    "one key twice among many": _make_repeated_key,
    "keys that resemble a known one": _make_near_names,
    "one long key": lambda size: _fill_body(b'{"', b"a", b'":0}', size),
    "one long string": lambda size: _fill_body(b'{"name":"', b"a", b'"}', size),
    "escapes": lambda size: _fill_body(b'{"name":"', b"\\u00e9", b'"}', size),
    "quotes without an end": lambda size: _fill_body(b'{"name":"', b'\\"', b"", size),
    "NUL at the end": lambda size: _fill_body(b'{"name":"', b"a", b'\\u0000"}', size),
    "numbers": lambda size: _fill_body(b'{"seeds":[', b"0,", b"0]}", size),
    "empty objects": lambda size: _fill_body(b'{"select":[', b"{},", b"{}]}", size),
    "long numbers": lambda size: _fill_body(b'{"seeds":[', b"9" * 4_299 + b",", b"0]}", size),
    "a long fraction": lambda size: _fill_body(b'{"seeds":[1.', b"1", b"]}", size),
    "open brackets": lambda size: b"[" * size,
    "open keys": lambda size: _fill_body(b"", b'{"a":', b"", size),
    "infinite at the end": lambda size: _fill_body(b'{"seeds":[', b"0,", b"1e999]}", size),
}


def yield_malformed_bodies() -> Iterator[Attack]:
    """Yields every malformed body on every route, at the route's size limit."""
    for method, path, who, limit in list_routes():
        for name, make in FORMS.items():
            yield Attack(f"{name} to {path}", method, path, who, make(limit - 8))


def yield_documents(names: dict[str, str]) -> Iterator[Attack]:
    """Yields documents of the largest permitted size that are valid or nearly valid."""
    run, user = names["run"], ("user", "POST")
    queries = {
        "one ID in 100 groups of 1000": {
            "groups": [_make_group(index, [run] * 1_000) for index in range(100)]
        },
        "2000 curves of one run": {
            "select": [{"run_id": run, "series": f"s{index}"} for index in range(999)],
            "buckets": 1_500,
        },
        "one curve 1000 times": {
            "select": [{"run_id": run, "series": "loss"}] * 1_000,
            "buckets": 1_500,
        },
    }
    for name, query in queries.items():
        yield Attack(name, user[1], "/api/v1/series:query", user[0], encode_shortest_json(query))
    unknown = "&".join(f"{index:x}limi" for index in range(1_700))
    yield Attack("unknown parameters", "GET", f"/api/v1/runs?{unknown}", "user", b"")
    for name, document in _make_submissions().items():
        yield Attack(name, user[1], "/api/v1/experiments", user[0], encode_shortest_json(document))
    yield Attack(
        "5000 environments",
        "POST",
        "/api/v1/workers",
        "worker",
        encode_shortest_json(_make_registration()),
    )
    first = 1
    for name, records in _make_batches(run).items():
        body = encode_shortest_json({"first_seq": first, "records": records})
        yield Attack(name, "POST", "/api/v1/attempts/{attempt}/telemetry", "attempt", body)
        first += len(records)


def _make_group(index: int, run_ids: list[str]) -> dict[str, Any]:
    return {"name": f"g{index}", "series": "loss", "run_ids": run_ids}


def _make_submissions() -> dict[str, dict[str, Any]]:
    nested: Any = {}
    for _ in range(25):
        nested = {"a": nested, "b": [0] * 100}
    wide = {f"k{index}": "x" * 20 for index in range(1_900)}
    return {
        "wide kwargs": {"definition": make_definition(env={"id": "CartPole-v1", "kwargs": wide})},
        "nested provenance": {"definition": make_definition(), "provenance": {"a": nested}},
        "3 MiB of provenance": {
            "definition": make_definition(),
            "provenance": {"diff": "x" * 3 * 2**20},
        },
        "many values of provenance": {
            "definition": make_definition(),
            "provenance": {"a": [0] * 190_000},
        },
        "1000 seeds": {"definition": make_definition(), "options": {"seeds": list(range(1_000))}},
    }


def _make_registration() -> dict[str, Any]:
    space = {"kind": "discrete", "n": 2}
    environments = [{"id": f"Env{index}-v1", "action_space": space} for index in range(5_000)]
    return {
        "name": "w2",
        "pool": "other",
        "host": "host-2",
        "boot_id": "boot-2",
        "pid": 100,
        "slots": 4,
        "work_order_versions": list(WORK_ORDER_VERSIONS),
        "version": "0.1.0",
        "catalogue": {**make_catalogue(), "environments": environments},
    }


def _make_batches(run: str) -> dict[str, list[dict[str, Any]]]:
    return {
        "many points": [make_points(run, "loss", range(25_000))],
        "many series": [make_points(run, f"s{index}", [1]) for index in range(4_900)],
        "many lines": [make_log(run, *["x" * 200] * 20) for _ in range(200)],
        "crossed points": [make_points(run, "loss", [step, 0]) for step in range(4_000)],
    }
