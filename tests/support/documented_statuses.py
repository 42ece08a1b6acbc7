"""Compares the status of each answer with the OpenAPI document of the application."""

import functools
import json
import re
from pathlib import Path

import httpx

DOCUMENT = Path(__file__).parents[2] / "frontend" / "openapi.json"


async def check_status(response: httpx.Response) -> None:
    """Fails on a status that the operation does not document; a hook of httpx.

    500 is left to the tests: no operation is meant to answer it.
    """
    path = response.request.url.path
    method = response.request.method.lower()
    documented = [
        statuses
        for own, pattern, statuses in _read_document()
        if own == method and pattern.fullmatch(path)
    ]
    status = response.status_code
    assert not documented or status == 500 or any(status in found for found in documented), (
        f"{status} is not documented for {method.upper()} {path}"
    )


@functools.cache
def _read_document() -> list[tuple[str, re.Pattern[str], frozenset[int]]]:
    """Reads the committed document, which a test compares with the application's."""
    paths = json.loads(DOCUMENT.read_text())["paths"]
    return [
        (method, _compile(path), frozenset(map(int, operation["responses"])))
        for path, methods in paths.items()
        for method, operation in methods.items()
    ]


def _compile(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{[^}]*\\\}", "[^/:]+", re.escape(path)))
