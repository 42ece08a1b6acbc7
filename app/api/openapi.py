"""The OpenAPI 3.1 document of the API.

The error responses of a route are derived from its parameters and its required permission.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, RouteContext, iter_route_contexts
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

import palestra
from app.api.auth import NEEDS, limit_to_project
from app.api.query import iterate_dependencies
from app.api.strict_body import JsonBody
from palestra.contract.views import Problem

_TEMPLATE: Final = "#/components/schemas/{model}"
_PROBLEM: Final = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
_VALUES: Final = frozenset({"const", "default", "enum", "example", "examples"})
"""Members of a schema that hold values, and no schemas."""
_REASONS: Final = {
    400: "The request could not be read.",
    401: "No good credential.",
    403: "The credential does not permit this.",
    404: "There is no such resource in this project.",
    408: "The request came in too slowly.",
    409: "The state does not permit this.",
    413: "Too large.",
    414: "The address is too long.",
    415: "Not JSON.",
    416: "There are no such bytes.",
    421: "Another host name.",
    422: "Not valid.",
    429: "Too often.",
    431: "The headers are too large, or too many.",
    503: "Not now.",
    507: "There is no room for this.",
}


def build(app: FastAPI) -> dict[str, Any]:
    """Returns the document of an application."""
    routes = list_api_routes(app)
    document = get_openapi(
        title="Palestra",
        version=palestra.__version__,
        routes=routes,
        separate_input_output_schemas=True,
        servers=app.servers,
    )
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    names = _add_models(schemas, routes)
    document["components"]["responses"] = {
        str(status): {"description": reason, "content": _PROBLEM}
        for status, reason in _REASONS.items()
    }
    for context in routes:
        for method in context.methods or ():
            _complete_operation(
                document["paths"][context.path_format][method.lower()], method, context, names
            )
    document["paths"] = _remove_refused(document["paths"])
    document["components"]["schemas"] = {
        name: {**_remove_refused(schema), "title": name} for name, schema in schemas.items()
    }
    return document


def list_api_routes(app: FastAPI) -> list[RouteContext]:
    """Returns the routes of FastAPI, without those of Starlette, which have no dependencies."""
    contexts = iter_route_contexts(app.routes)
    return [context for context in contexts if isinstance(context.original_route, APIRoute)]


def build_operation_id(route: APIRoute) -> str:
    """Returns the name of a route's operation."""
    return route.name


def need_of(context: RouteContext) -> str | None:
    """Returns the permission that a route requires: a scope, `attempt` or `login`.

    `None` for a route that requires neither.
    """
    route = context.original_route
    if not isinstance(route, APIRoute):
        return getattr(route, NEEDS, None)
    needs = (
        getattr(dependant.call, NEEDS, None)
        for dependant in iterate_dependencies(context.dependant)
    )
    return next((need for need in needs if need is not None), None)


def may_be_limited(context: RouteContext) -> bool:
    """Returns whether the query may limit a request to one project, which may not exist."""
    called = (dependant.call for dependant in iterate_dependencies(context.dependant))
    return limit_to_project in called


def _add_models(
    schemas: dict[str, Any], routes: Iterable[RouteContext]
) -> dict[type[BaseModel], str]:
    """Adds the schemas of all bodies.

    A schema that differs from the response schema of the same name gets the suffix `Input`.
    """
    bodies = [body.model for context in routes for body in _bodies(context)]
    models = list(dict.fromkeys(bodies))
    _, problem = models_json_schema([(Problem, "serialization")], ref_template=_TEMPLATE)
    schemas.update(problem["$defs"])
    mapping, found = models_json_schema(
        [(model, "validation") for model in models], ref_template=_TEMPLATE
    )
    definitions: dict[str, Any] = _remove_nulls(found.get("$defs", {}))
    renamed = _rename_conflicting(schemas, definitions)
    for name, schema in definitions.items():
        schemas[renamed.get(name, name)] = _renamed(schema, renamed)
    names = {model: mapping[(model, "validation")]["$ref"].rpartition("/")[2] for model in models}
    return {model: renamed.get(name, name) for model, name in names.items()}


def _rename_conflicting(schemas: dict[str, Any], definitions: dict[str, Any]) -> dict[str, str]:
    """Returns new names for schemas that differ from the response schema of the same name.

    Includes schemas that refer to a renamed one.
    """
    renamed = {
        name: f"{name}Input"
        for name, schema in definitions.items()
        if name in schemas and schemas[name] != schema
    }
    while True:
        more = {
            name: f"{name}Input"
            for name, schema in definitions.items()
            if name in schemas and name not in renamed and _renamed(schema, renamed) != schema
        }
        if not more:
            return renamed
        renamed.update(more)


def _remove_nulls(schema: Any) -> Any:
    """Removes members that are `null`, which FastAPI does not write into the schemas of responses.

    Otherwise equal schemas of bodies and responses would differ.
    """
    if isinstance(schema, dict):
        return {key: _remove_nulls(value) for key, value in schema.items() if value is not None}
    return [_remove_nulls(value) for value in schema] if isinstance(schema, list) else schema


def _remove_refused(schema: Any) -> Any:
    """Removes what programs that generate clients refuse.

    They name classes by titles, and refuse equal ones: pydantic derives titles from the names of
    fields and models, which repeat. Only components keep one, their name. An object as default is
    refused of a schema that is written where it is used.
    """
    if isinstance(schema, list):
        return [_remove_refused(value) for value in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value if key in _VALUES else _remove_refused(value)
        for key, value in schema.items()
        # The value of a property that is called `title` is a schema, and no text.
        if not (key == "title" and isinstance(value, str))
        and not (key == "default" and isinstance(value, dict) and "$ref" not in schema)
    }


def _renamed(schema: Any, renamed: dict[str, str]) -> Any:
    if isinstance(schema, dict):
        return {key: _renamed(value, renamed) for key, value in schema.items()}
    if isinstance(schema, list):
        return [_renamed(value, renamed) for value in schema]
    if isinstance(schema, str) and schema.startswith("#/components/schemas/"):
        name = schema.rpartition("/")[2]
        return _TEMPLATE.format(model=renamed.get(name, name))
    return schema


def _bodies(context: RouteContext) -> Iterator[JsonBody[Any]]:
    for dependant in iterate_dependencies(context.dependant):
        if isinstance(dependant.call, JsonBody):
            yield dependant.call


def _complete_operation(
    operation: dict[str, Any],
    method: str,
    context: RouteContext,
    names: dict[type[BaseModel], str],
) -> None:
    """Adds the body and every error response to an operation."""
    # 408, 414, 431 and 503 are refusals of the connection, before any route is found.
    refusals = {400, 408, 414, 421, 422, 431, 503}
    for body in _bodies(context):
        schema = {"$ref": _TEMPLATE.format(model=names[body.model])}
        content = {"application/json": {"schema": schema}}
        operation["requestBody"] = {"required": body.required, "content": content}
        refusals |= {413, 415}
    if need_of(context) is not None:
        refusals |= {401, 403, 429}
    else:
        operation["security"] = []
    if method != "GET":
        refusals.add(507)
    if "{" in (context.path_format or "") or may_be_limited(context):
        refusals.add(404)
    responses = operation["responses"]
    refusals |= {int(status) for status in responses if status.isdecimal() and int(status) >= 400}
    for status in sorted(refusals):
        responses[str(status)] = {"$ref": f"#/components/responses/{status}"}
