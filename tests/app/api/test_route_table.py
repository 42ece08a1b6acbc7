"""The table of routes selects and answers as FastAPI's router does, with each dependency once."""

import itertools
import re
from collections import Counter
from collections.abc import AsyncIterator
from typing import Annotated, Any

import httpx
import pytest
from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.routing import iter_route_contexts

from app.api.route_table import RouteTable
from app.db.clock import SKEW
from app.main import create_app
from app.settings import Settings
from tests.app.api.serving import AppServer
from tests.app.api.test_access import SUBSTITUTES
from tests.support.statements import note_statements

pytestmark = pytest.mark.asyncio(loop_scope="module")

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
VARIANTS = ("", "/", "/x", ":x", "x", "\n")
LEFT_TO_FASTAPI = 15
"""Routes without content in their answers, and those that set cookies."""
QUERIES = ("", "?limit=1", "?limit=0", "?limit=x&cursor=%21", "?zz=1", "?limit=1&limit=2")


async def _serve_nothing(_scope: Any, _receive: Any, _send: Any) -> None:
    pytest.fail("the request was not served by the table")


def find_table(app: FastAPI) -> RouteTable:
    """Returns the table of a running application."""
    layer: Any = app.middleware_stack
    while not isinstance(layer, RouteTable):
        layer = getattr(layer, "app", None) or layer._app
    return layer


async def test_the_table_selects_what_a_comparison_with_each_route_selects() -> None:
    app = create_app(Settings())
    table = RouteTable(_serve_nothing, app.router, {})
    contexts = list(iter_route_contexts(app.routes))
    known = [str(context.path) for context in contexts]
    paths = {
        path.replace("{", start).replace("}", end) + variant
        for path, variant in itertools.product(known, VARIANTS)
        for start, end in (("", ""), (":", "%2F"), ("é ", "."), ("a:b", "/"))
    }
    assert len(paths) > 2_000
    served = Counter[bool]()
    for path, method in itertools.product([*paths, "", "/", "//", "/x/y/z/a/b/c/d"], METHODS):
        matching = (
            (context, found)
            for context in contexts
            if method in (context.methods or ()) and (found := context.path_regex.match(path))
        )
        context, found = next(matching, (None, None))
        scope: dict[str, Any] = {"type": "http", "method": method, "path": path}
        if table._select(scope) is None:
            assert "route" not in scope
            served[context is not None] += 1
            continue
        assert context is not None, (method, path)
        assert found is not None
        assert scope["route"] is context.original_route
        assert scope["endpoint"] is context.endpoint
        assert scope["path_params"] == found.groupdict()
    # What the table leaves to FastAPI though a route fits are the few routes that it cannot serve.
    kept = {
        (str(context.path), method)
        for context in contexts
        for method in context.methods or ()
        if table._select({"method": method, "path": str(context.path)}) is None
    }
    assert len(kept) == LEFT_TO_FASTAPI
    assert served[True] > 0


async def test_a_path_whose_first_segments_have_parameters_is_refused_at_start() -> None:
    router = APIRouter()

    @router.get("/{name}/x")
    async def answer(name: str) -> str:
        return name

    with pytest.raises(ValueError, match="must have no parameter"):
        RouteTable(_serve_nothing, router, {})


async def test_a_request_looks_its_caller_up_once(shared: AppServer) -> None:
    """FastAPI's tree has authentication in three branches."""
    with note_statements(shared.database) as noted:
        async with shared.client("user") as client:
            answer = await client.get("/api/v1/runs", params={"limit": "1"})
    assert answer.status_code == 200
    assert len([one for one in noted if "FROM tokens" in one]) == 1


async def test_dependencies_are_called_in_order_once_and_end_before_the_answer() -> None:
    noted: list[str] = []

    async def first(request: Request) -> str:
        noted.append(f"first {request.url.path}")
        return "first"

    async def opened(value: Annotated[str, Depends(first)]) -> AsyncIterator[str]:
        noted.append(f"open after {value}")
        try:
            yield "session"
        except KeyError:
            noted.append("rolled back")
            raise
        noted.append("committed")

    app = FastAPI(openapi_url=None)
    router = APIRouter(dependencies=[Depends(first)])

    @router.get("/a/b/c/{name}", status_code=201)
    async def answer(
        name: str,
        value: Annotated[str, Depends(first)],
        session: Annotated[str, Depends(opened, scope="function")],
        number: int = 3,
    ) -> dict[str, Any]:
        noted.append("endpoint")
        if name == "fail":
            raise KeyError(name)
        return {"name": name, "number": number, "values": [value, session]}

    async def explain(_request: Request, error: Exception) -> Any:
        raise AssertionError(error)

    app.include_router(router)
    app.add_middleware(RouteTable, router=app.router, handlers={ZeroDivisionError: explain})
    transport = httpx.ASGITransport(app, raise_app_exceptions=True)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        found = await client.get("/a/b/c/d", params={"number": "4"})
        assert (found.status_code, found.json()) == (
            201, {"name": "d", "number": 4, "values": ["first", "session"]},
        )  # fmt: skip
        assert noted == ["first /a/b/c/d", "open after first", "endpoint", "committed"]
        noted.clear()
        with pytest.raises(KeyError):
            await client.get("/a/b/c/fail")
        assert noted[2:] == ["endpoint", "rolled back"]
        noted.clear()
        with pytest.raises(Exception, match="int_parsing"):
            await client.get("/a/b/c/d", params={"number": "x"})
        assert "endpoint" not in noted


async def test_answers_are_those_of_the_router(
    shared: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every list and page, with good and bad parameters, of callers with and without rights."""
    # The workers are silent for long, so that none becomes offline between two requests.
    SKEW.seconds = 3_600.0
    table = find_table(shared.app)
    paths = [
        str(context.path)
        for context in iter_route_contexts(shared.app.routes)
        if "GET" in (context.methods or ()) and not str(context.path).endswith("/events")
    ]
    assert len(paths) > 50
    names = {**SUBSTITUTES, **shared.path_names}
    for path, who in itertools.product(paths, ("user", "viewer", "enrolment", "anonymous")):
        url = path
        for name, value in names.items():
            url = url.replace(f"{{{name}}}", value)
        async with shared.client(who) as client:
            for query in QUERIES if who == "user" else ("",):
                found = await client.get(url + query)
                with monkeypatch.context() as patch:
                    patch.setattr(table, "_entries", {})
                    expected = await client.get(url + query)
                assert _read(found) == _read(expected), (who, url + query)


def _read(answer: httpx.Response) -> Any:
    """Returns what of an answer does not differ from one request to the next."""
    headers = {name for name, _ in answer.headers.multi_items()}
    media_type = answer.headers.get("content-type", "").partition(";")[0]
    is_json = media_type in {"application/json", "application/problem+json"}
    return answer.status_code, headers, _shape(answer.json()) if is_json else None


def _shape(value: Any) -> Any:
    """Returns a document without its numbers, times and request IDs."""
    if isinstance(value, dict):
        return {key: _shape(member) for key, member in value.items() if key != "request_id"}
    if isinstance(value, list):
        return [_shape(member) for member in value]
    is_time = isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT", value)
    return type(value).__name__ if is_time or isinstance(value, (int, float)) else value
