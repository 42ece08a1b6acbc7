"""Which routes bound the expensive reads of a person."""

from fastapi import FastAPI

from app.api.expensive_reads import ExpensiveRead
from app.api.openapi import list_api_routes
from app.main import create_app
from app.settings import Settings

EXPENSIVE = {
    "/api/v1/runs",
    "/api/v1/runs:groups",
    "/api/v1/runs:keys",
    "/api/v1/runs:compare",
    "/api/v1/experiments",
    "/api/v1/series:query",
    "/api/v1/statistics:aggregate",
    "/api/v1/usage",
}


def test_every_route_that_may_read_all_runs_is_bounded() -> None:
    app: FastAPI = create_app(Settings())
    bounded = {
        str(context.path)
        for context in list_api_routes(app)
        if ExpensiveRead.dependency in {call.call for call in context.dependant.dependencies}
    }
    assert bounded == EXPENSIVE
