"""Handles the requests of one route: its dependencies, each called once, its endpoint, the answer.

FastAPI walks the tree of a route's dependencies for each request, and walks what is below a
dependency again wherever that one is used, as authentication is. Here the tree becomes a list of
calls when the server starts. Parameters are validated and answers written by FastAPI's functions.
"""

from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import Any, Final

from fastapi import Request, Response
from fastapi.datastructures import DefaultPlaceholder
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import request_params_to_args
from fastapi.exceptions import RequestValidationError
from fastapi.routing import RouteContext, serialize_response
from fastapi.security.base import SecurityBase

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

_NOT_CALLED: Final = object()
"""Stands for the result of a call that was not made, since a parameter is not valid."""
_NO_CONTENT: Final = 204
_PARAMETERS: Final = (
    ("path_params", "path_params"),
    ("query_params", "query_params"),
    ("header_params", "headers"),
)
"""Attributes of a dependency that declare parameters, and those of the request that hold them."""
_LEFT_TO_FASTAPI: Final = (
    "body_params", "cookie_params", "background_tasks_param_name", "security_scopes_param_name",
    "response_param_name", "websocket_param_name", "http_connection_param_name", "concurrency",
)  # fmt: skip
_ANSWERS_LEFT_TO_FASTAPI: Final = (
    "body_field", "stream_item_field", "is_sse_stream", "is_json_stream", "max_body_size",
    "response_model_include", "response_model_exclude", "response_model_exclude_unset",
    "response_model_exclude_defaults", "response_model_exclude_none",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of a dependency, or of the endpoint.

    Attributes:
        function: A coroutine function, or what makes the context manager of a generator.
        is_context: Whether it makes a context manager.
        needed: Indices of the calls that must have been made before.
        arguments: Names of arguments that are results of earlier calls, with their indices.
        parameters: Attributes of the request that hold its parameters, with their declarations.
        request: Name of the argument that is the request.
    """

    function: Callable[..., Any]
    is_context: bool
    needed: tuple[int, ...]
    arguments: tuple[tuple[str, int], ...]
    parameters: tuple[tuple[str, Sequence[Any]], ...]
    request: str | None


def build_handler(context: RouteContext) -> Handler | None:
    """Returns the handler of a route's requests.

    Args:
        context: The route, with what the routers around it add.

    Returns:
        `None` for a route that FastAPI has to serve itself, since it has what few routes have: no
        content in its answer, headers that the endpoint sets, or a function that is no coroutine.
    """
    calls: list[_Call] = []
    writes_json = isinstance(context.response_class, DefaultPlaceholder)
    if (
        any(getattr(context, name) for name in _ANSWERS_LEFT_TO_FASTAPI)
        or context.status_code == _NO_CONTENT
        or writes_json is (context.response_field is None)
        or _add_calls(context.dependant, calls, {}) is None
        or calls[-1].is_context
    ):
        return None
    return _RouteHandler(context, calls).handle


def _add_calls(dependant: Dependant, calls: list[_Call], known: dict[Any, int]) -> int | None:
    """Adds the call of a dependency to `calls`, after those of the dependencies below it.

    Args:
        dependant: The dependency, or the endpoint.
        calls: The calls so far.
        known: Their indices, by function.

    Returns:
        The index of the call; `None` if it cannot be made here.
    """
    function: Any = dependant.call
    if function in known and dependant.use_cache:
        return known[function]
    arguments: list[tuple[str, int]] = []
    needed: list[int] = []
    for child in dependant.dependencies:
        called: Any = child.call
        if isinstance(called, SecurityBase) and child.name is None:
            continue  # It is there for the OpenAPI document; `authenticate` reads the headers.
        index = _add_calls(child, calls, known)
        if index is None:
            return None
        needed.append(index)
        if child.name is not None:
            arguments.append((child.name, index))
    is_context = isasyncgenfunction(function) and dependant.scope == "function"
    if not (is_context or iscoroutinefunction(function)) or any(
        getattr(dependant, name) for name in _LEFT_TO_FASTAPI
    ):
        return None
    declared = [(held, getattr(dependant, name)) for name, held in _PARAMETERS]
    calls.append(
        _Call(
            asynccontextmanager(function) if is_context else function,
            is_context,
            tuple(needed),
            tuple(arguments),
            tuple(one for one in declared if one[1]),
            dependant.request_param_name,
        )
    )
    known[function] = len(calls) - 1
    return len(calls) - 1


class _RouteHandler:
    """See the module.

    Args:
        context: The route.
        calls: Its calls in their order, of which the endpoint's is the last.
    """

    def __init__(self, context: RouteContext, calls: Sequence[_Call]) -> None:
        self._dependencies = tuple(calls[:-1])
        self._endpoint = calls[-1]
        self._has_contexts = any(call.is_context for call in calls)
        self._field = context.response_field
        self._by_alias = context.response_model_by_alias
        self._status = context.status_code or 200

    async def handle(self, request: Request) -> Response:
        """Returns the answer; the contexts of the dependencies have ended then.

        Raises:
            RequestValidationError: If parameters are not valid.
        """
        if not self._has_contexts:
            return await self._answer(request, None)
        async with AsyncExitStack() as stack:
            return await self._answer(request, stack)

    async def _answer(self, request: Request, stack: AsyncExitStack | None) -> Response:
        results: list[Any] = []
        errors: list[Any] = []
        for call in self._dependencies:
            values = _collect(call, request, results, errors)
            if values is None:
                results.append(_NOT_CALLED)
            elif call.is_context and stack is not None:
                results.append(await stack.enter_async_context(call.function(**values)))
            else:
                results.append(await call.function(**values))
        values = _collect(self._endpoint, request, results, errors)
        if values is None or errors:
            raise RequestValidationError(errors)
        found = await self._endpoint.function(**values)
        if isinstance(found, Response):
            return found
        content = await serialize_response(
            field=self._field, response_content=found, by_alias=self._by_alias, dump_json=True
        )
        return Response(content, self._status, media_type="application/json")


def _collect(
    call: _Call, request: Request, results: Sequence[Any], errors: list[Any]
) -> dict[str, Any] | None:
    """Returns the arguments of a call, or `None` if it cannot be made; adds to the errors."""
    values: dict[str, Any] = {name: results[index] for name, index in call.arguments}
    faults: list[Any] = []
    for held, declared in call.parameters:
        found, wrong = request_params_to_args(declared, getattr(request, held))
        values.update(found)
        faults.extend(wrong)
    errors.extend(faults)
    if faults or any(results[index] is _NOT_CALLED for index in call.needed):
        return None
    if call.request is not None:
        values[call.request] = request
    return values
