"""Query parameters that a route does not declare are refused on every route, never ignored."""

from typing import Any
from urllib.parse import quote

import pytest

from app.api.openapi import list_api_routes
from app.api.query import list_parameters
from app.main import create_app
from app.settings import Settings
from tests.app.api.serving import AppServer
from tests.app.api.test_access import PUBLIC, SUBSTITUTES
from tests.support.documented_statuses import read_paths

pytestmark = pytest.mark.asyncio(loop_scope="module")


def _list_routes() -> list[tuple[str, str, dict[str, bool]]]:
    contexts = list_api_routes(create_app(Settings()))
    found = [
        (method, str(context.path), list_parameters(context.original_route.dependant))  # type: ignore[attr-defined]
        for context in contexts
        for method in context.methods or ()
    ]
    assert len(found) > 30
    return sorted(found, key=str)


async def ask(shared: AppServer, method: str, path: str, query: str) -> tuple[int, dict[str, Any]]:
    """Returns the status of an answer, and the problem if the request was refused."""
    for name, value in SUBSTITUTES.items():
        path = path.replace(f"{{{name}}}", value)
    async with shared.client("anonymous" if (method, path) in PUBLIC else "user") as client:
        answer = await client.request(method, f"{path}?{query}")
    return answer.status_code, answer.json() if answer.is_error else {}


@pytest.mark.parametrize(("method", "path", "declared"), _list_routes())
async def test_every_route_refuses_unknown_query_parameters(
    shared: AppServer, method: str, path: str, declared: dict[str, bool]
) -> None:
    status, problem = await ask(shared, method, path, "zzqq=1")
    assert (status, problem["code"]) == (422, "unknown_parameter"), problem
    (error,) = problem["errors"]
    assert error["pointer"] == "query/zzqq"
    assert all(name in error["message"] for name in declared) or "did you mean" in error["message"]
    for name, several in declared.items():
        if several:
            continue
        status, problem = await ask(shared, method, path, f"{name}=1&{name}=2")
        assert (status, problem["code"]) == (422, "repeated_parameter"), name
        misspelt, problem = await ask(shared, method, path, f"{name[0]}{name[2:]}x=1")
        assert (misspelt, problem["code"]) == (422, "unknown_parameter")


VALUES = {
    "by": "agent env",
    "column": "env_step value",
    "columns": "agent.name env.id",
    "experiment": "x y",
    "run": f"run_{'0' * 26} run_{'1' * 26}",
    "series": "loss/policy loss/value",
    "state": "queued failed",
    "type": "run job",
}
"""Two values of each parameter that is a list."""


def _list_repeatable() -> list[tuple[str, str]]:
    """Returns path and name of each query parameter that the OpenAPI document calls an array."""
    return [
        (path, parameter["name"])
        for path, operations in read_paths().items()
        for parameter in operations.get("get", {}).get("parameters", ())
        for schema in (parameter["schema"], *parameter["schema"].get("anyOf", ()))
        if parameter["in"] == "query" and schema.get("type") == "array"
    ]


@pytest.mark.parametrize(("path", "name"), _list_repeatable())
async def test_every_parameter_that_is_a_list_takes_two_values(
    shared: AppServer, path: str, name: str
) -> None:
    values = "project user" if "/usage" in path else VALUES[name]
    query = "&".join(f"{name}={quote(value)}" for value in values.split())
    if path.endswith("records:export"):
        query += "&experiment=x"
    # A stream would not end: it is refused for another parameter.
    is_stream = path.endswith("/events")
    status, problem = await ask(shared, "GET", path, f"{query}&after=-1" if is_stream else query)
    if is_stream:
        assert [error["pointer"] for error in problem["errors"]] == ["query/after"]
    else:
        assert status in {200, 404}, problem


@pytest.mark.parametrize(
    ("query", "code", "pointer", "words"),
    [
        ("/jobs?experimnt=x", "unknown_parameter", "query/experimnt", "did you mean experiment?"),
        ("/runs?state=queued&state=running", "repeated_parameter", "query/state", "takes it once"),
        ("/workers?limit=abc", "unknown_parameter", "query/limit", "takes none"),
        ("/jobs?limit=abc", "invalid_parameter", "query/limit", "must be a whole number"),
        ("/jobs?limit=0", "invalid_parameter", "query/limit", "must be at least 1"),
        ("/runs?state=queueing", "invalid_parameter", "query/state", "must be 'queued'"),
        ("/runs?Limit=5", "unknown_parameter", "query/Limit", "did you mean limit?"),
        ("/events?types=run", "unknown_parameter", "query/types", "did you mean type?"),
        ("/catalogue?pool=a%20b", "invalid_parameter", "query/pool", "must match"),
        ("/jobs?a%2Fb=1", "unknown_parameter", "query/a~1b", "unknown parameter"),
    ],
)
async def test_a_refused_query_names_the_parameter_and_the_remedy(
    shared: AppServer, query: str, code: str, pointer: str, words: str
) -> None:
    path, _, rest = query.partition("?")
    status, problem = await ask(shared, "GET", f"/api/v1{path}", rest)
    assert (status, problem["code"]) == (422, code), problem
    assert problem["errors"][0]["pointer"] == pointer
    assert words in problem["errors"][0]["message"]
    assert pointer in problem["detail"]


async def test_all_errors_of_a_query_are_reported_together(shared: AppServer) -> None:
    _, problem = await ask(shared, "GET", "/api/v1/jobs", "runn=1&poool=2&pool=a&pool=b")
    assert [error["pointer"] for error in problem["errors"]] == [
        "query/runn",
        "query/poool",
        "query/pool",
    ]


async def test_a_filter_accepts_several_values(shared: AppServer) -> None:
    status, problem = await ask(shared, "GET", "/api/v1/events", "run=a&run=b&after=-1")
    assert (status, problem["code"], problem["errors"][0]["pointer"]) == (
        422,
        "invalid_parameter",
        "query/after",
    )
