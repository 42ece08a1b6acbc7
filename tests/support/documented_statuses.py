"""The committed OpenAPI document, and the statuses of answers compared with it.

A test compares the document with the application's, which takes two seconds to build.
"""

import functools
import json
import re
from pathlib import Path
from typing import Any

import httpx

DOCUMENT = Path(__file__).parents[2] / "frontend" / "openapi.json"


@functools.cache
def read_paths() -> dict[str, Any]:
    """Returns the operations of the document by path and method."""
    paths: dict[str, Any] = json.loads(DOCUMENT.read_text())["paths"]
    return paths


async def check_status(response: httpx.Response) -> None:
    """Fails on a status that the operation does not document; a hook of httpx.

    500 is left to the tests: no operation is meant to answer it.
    """
    path = response.request.url.path
    method = response.request.method.lower()
    documented = [
        statuses
        for own, pattern, statuses in _list_statuses()
        if own == method and pattern.fullmatch(path)
    ]
    status = response.status_code
    assert not documented or status == 500 or any(status in found for found in documented), (
        f"{status} is not documented for {method.upper()} {path}"
    )


@functools.cache
def _list_statuses() -> list[tuple[str, re.Pattern[str], frozenset[int]]]:
    return [
        (method, _compile(path), frozenset(map(int, operation["responses"])))
        for path, methods in read_paths().items()
        for method, operation in methods.items()
    ]


def _compile(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{[^}]*\\\}", "[^/:]+", re.escape(path)))
