"""Commands of the thresholds of projects: `palestra thresholds ...`."""

from typing import Annotated

import typer

from palestra.cli.output import build_table, emit_json, say, show
from palestra.cli.request_documents import read_request
from palestra.cli.server_address import Json, Server, TokenFile, connect
from palestra.contract.thresholds import ThresholdDirection, ThresholdRequest

Slug = Annotated[str, typer.Argument(metavar="PROJECT", help="Slug of a project.")]
ThresholdName = Annotated[
    str, typer.Argument(metavar="NAME", help="Lower-case letters, digits and hyphens.")
]


def register(app: typer.Typer) -> None:
    """Adds the commands of this module to a group."""
    thresholds = typer.Typer(
        help="Lists, sets and removes the thresholds of a project, by which lists are sorted.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    thresholds.command("list")(list_thresholds)
    thresholds.command("set")(set_threshold)
    thresholds.command("remove")(remove_threshold)
    app.add_typer(thresholds, name="thresholds")


def list_thresholds(
    project: Slug, server: Server = None, token_file: TokenFile = None, json: Json = False
) -> None:
    """Lists the thresholds of a project, and how many runs have reached each."""
    with connect(server, token_file) as client:
        rows = list(client.thresholds(project))
    if json:
        return emit_json(rows)
    cells = [
        (
            row.name,
            row.series,
            f"{row.direction.replace('_', ' ')} {row.value:g}",
            row.runs,
            row.pending_runs or "",
        )
        for row in rows
    ]
    numbers = ("runs", "pending runs")
    return show(build_table(("threshold", "series", "value", *numbers), cells, numbers=numbers))


def set_threshold(
    project: Slug,
    name: ThresholdName,
    series: Annotated[str, typer.Argument(metavar="SERIES", help="For example evaluation/mean.")],
    value: Annotated[
        float, typer.Argument(metavar="VALUE", help="A number; -- before a negative one.")
    ],
    at_most: Annotated[
        bool, typer.Option("--at-most", help="Values at or below it reach it, as for a loss.")
    ] = False,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Declares a threshold, or replaces it: where each run first reached it is kept.

    palestra runs --filter "reached.NAME<100000" --sort reached.NAME lists runs by it.
    """
    direction = ThresholdDirection.AT_MOST if at_most else ThresholdDirection.AT_LEAST
    members = {"series": series, "value": value, "direction": direction.value}
    request = read_request(ThresholdRequest, members)
    with connect(server, token_file) as client:
        made = client.set_threshold(
            project, name, request.series, request.value, direction=direction
        )
    if json:
        return emit_json(made)
    pending = f"; {made.pending_runs} runs are being compared with it" if made.pending_runs else ""
    return say(f"lists can be filtered and sorted by reached.{made.name}{pending}")


def remove_threshold(
    project: Slug,
    name: ThresholdName,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Removes a threshold and what was kept of its crossings; the curves stay."""
    with connect(server, token_file) as client:
        client.remove_threshold(project, name)
    emit_json({"project": project, "removed": name}) if json else say(f"removed {name}")
