"""What runs are compared by exists as a route, a command, a method of `Client` and on a page."""

import json
from pathlib import Path

import pytest
import typer.main

from palestra.cli.main import app
from palestra.client import Client

FRONTEND = Path(__file__).parents[2] / "frontend"
FACES = {
    "POST /series:query": ("series", "series", "api/queries.ts", '"/series:query"'),
    "GET /runs/{run_id}/series": ("series", "series_names", "api/queries.ts", "/series`"),
    "GET /runs": ("runs", "runs", "api/runQueries.ts", '"/runs"'),
    "GET /experiments": ("experiments", "experiments", "api/queries.ts", '"/experiments"'),
    "GET /runs:groups": ("runs", "run_groups", "api/runQueries.ts", '"/runs:groups"'),
    "GET /runs:keys": ("filter-keys", "run_keys", "api/runQueries.ts", '"/runs:keys"'),
    "POST /runs:act": ("pause", "act_on_runs", "api/runActions.ts", '"/runs:act"'),
    "POST /runs:compare": (
        "compare",
        "compare_runs",
        "api/statisticsQueries.ts",
        "/runs:compare",
    ),
    "POST /statistics:aggregate": (
        "statistics",
        "aggregate_statistics",
        "api/statisticsQueries.ts",
        '"/statistics:aggregate"',
    ),
    "GET /runs/{run_id}/health": (
        "health",
        "health",
        "features/run/FindingsPanel.tsx",
        "describeFindings",
    ),
    "GET /records:export": (
        "export-records",
        "export_records",
        "api/recordExport.ts",
        '"/records:export"',
    ),
    "GET /views": ("views list", "views", "api/savedViews.ts", "everyPage<SavedView>"),
    "POST /views": ("views save", "save_view", "api/savedViews.ts", "post<SavedViewDetail>"),
    "GET /views/{view_id}": ("views show", "view", "api/savedViews.ts", "get<SavedViewDetail>"),
    "PATCH /views/{view_id}": (
        "views change",
        "change_view",
        "api/savedViews.ts",
        "patch<SavedViewDetail>",
    ),
    "DELETE /views/{view_id}": ("views delete", "delete_view", "api/savedViews.ts", "remove("),
    "GET /projects/{slug}/thresholds": (
        "thresholds list",
        "thresholds",
        "features/projects/Thresholds.tsx",
        "thresholdsQuery",
    ),
    "PUT /projects/{slug}/thresholds/{threshold}": (
        "thresholds set",
        "set_threshold",
        "features/projects/Thresholds.tsx",
        "<ThresholdDialog",
    ),
    "DELETE /projects/{slug}/thresholds/{threshold}": (
        "thresholds remove",
        "remove_threshold",
        "features/projects/Thresholds.tsx",
        "removeThreshold",
    ),
    "POST /events:stream": ("watch", "events", "live/sharedConnection.ts", "events:stream"),
    "POST /events:poll": ("watch", "events", "live/sharedConnection.ts", "events:poll"),
}
"""Command, method of `Client`, file of the dashboard and what it contains, of each route.

The dashboard shows findings as members of runs; the commands that follow runs are those of events.
"""


@pytest.mark.parametrize("route", FACES)
def test_a_route_has_a_command_a_method_and_a_place_in_the_dashboard(route: str) -> None:
    command, method, file, text = FACES[route]
    verb, path = route.split(" ")
    paths = json.loads((FRONTEND / "openapi.json").read_text("utf-8"))["paths"]
    assert verb.lower() in paths[f"/api/v1{path}"]
    found = typer.main.get_command(app)
    for name in command.split(" "):
        found = found.commands[name]  # type: ignore[attr-defined]
    assert callable(getattr(Client, method))
    assert text in (FRONTEND / "src" / file).read_text("utf-8")
