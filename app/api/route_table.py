"""Finds the route of a request by its method and the first segments of its path.

FastAPI compares a request with one route after the other, which takes longer than everything else
around the last of 165 routes. A path that no route has goes to the router's default, the dashboard.
A method that no route has at a path is refused here, since FastAPI's refusal names the methods of
one route only. What else the table does not serve goes on to FastAPI's router: a few routes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.routing import APIRoute, RouteContext, iter_route_contexts
from starlette.types import ASGIApp, ExceptionHandler, Receive, Scope, Send

from app.api.answer_route import AnswerRoute
from app.api.head_requests import list_methods
from app.api.route_handler import Handler, build_handler

_FIRST: Final = 4
"""Segments of a path by which routes are found, with the empty one before the first slash."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A route; `handle` is `None` if FastAPI has to serve it itself."""

    pattern: re.Pattern[str]
    route: APIRoute
    endpoint: Any
    handle: Handler | None


class RouteTable:
    """ASGI middleware before FastAPI's router, inside of all other middleware.

    Args:
        app: Serves the requests that the table does not.
        router: Has the routes, all of them by now.
        handlers: What answers an exception, by its class.
    """

    def __init__(
        self, app: ASGIApp, router: APIRouter, handlers: Mapping[Any, ExceptionHandler]
    ) -> None:
        self._app = app
        self._router = router
        self._handlers = handlers
        self._entries: dict[tuple[str, int, str], list[_Entry]] = {}
        self._paths: dict[tuple[int, str], list[tuple[re.Pattern[str], frozenset[str]]]] = {}
        """Patterns of paths, with the methods that each answers."""
        for context in iter_route_contexts(router.routes):
            self._add(context)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        handle = self._select(scope)
        if handle is None:
            methods = self._list_methods(scope["path"])
            if not methods or scope["method"] in methods:
                serve = self._app if methods else self._router.default
                await serve(scope, receive, send)
                return
            handle = partial(_refuse_method, methods)
        request = Request(scope, receive, send)
        try:
            response = await handle(request)
        except Exception as error:
            answer: Any = self._find_handler(error)
            if answer is None:
                raise
            response = await answer(request, error)
        await response(scope, receive, send)

    def _add(self, context: RouteContext) -> None:
        path, route = context.path_format or "", context.original_route
        first = _read_first(path)
        if not isinstance(route, APIRoute) or "{" in first or ":path}" in (context.path or ""):
            raise ValueError(f"{path}: the first segments of a route's path must have no parameter")
        handle = build_handler(context)
        if handle is not None and isinstance(route, AnswerRoute):
            handle = route.wrap_handler(handle)
        entry = _Entry(context.path_regex, route, context.endpoint, handle)
        key = path.count("/"), first
        self._paths.setdefault(key, []).append((context.path_regex, list_methods(context)))
        for method in context.methods or ():
            self._entries.setdefault((method, *key), []).append(entry)

    def _list_methods(self, path: str) -> frozenset[str]:
        """Returns the methods that are answered at this path; none if no route has the path."""
        listed = self._paths.get((path.count("/"), _read_first(path)), ())
        return frozenset[str]().union(
            *(methods for pattern, methods in listed if pattern.match(path))
        )

    def _select(self, scope: Scope) -> Handler | None:
        """Returns the handler of a request and notes the route in the request's scope."""
        path = scope["path"]
        key = scope["method"], path.count("/"), _read_first(path)
        for entry in self._entries.get(key, ()):
            found = entry.pattern.match(path)
            if found is None:
                continue
            if entry.handle is not None:
                scope["path_params"] = found.groupdict()
                scope["route"], scope["endpoint"] = entry.route, entry.endpoint
            return entry.handle
        return None

    def _find_handler(self, error: Exception) -> ExceptionHandler | None:
        found = (self._handlers.get(kind) for kind in type(error).__mro__)
        return next((handler for handler in found if handler is not None), None)


async def _refuse_method(methods: frozenset[str], _request: Request) -> Response:
    raise HTTPException(405, headers={"Allow": ", ".join(sorted(methods))})


def _read_first(path: str) -> str:
    return "/".join(path.split("/", _FIRST)[:_FIRST])
