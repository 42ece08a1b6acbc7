"""`palestra series`: the series of a run, and their curves; `palestra filter-keys`."""

from typing import Annotated, Any, Literal

import typer

from palestra.cli.output import build_table, emit_json, fail_usage, say, show
from palestra.cli.request_documents import name_options, read_request
from palestra.cli.scored_runs import Filter, Ids
from palestra.cli.server_address import Json, Project, Server, TokenFile, connect
from palestra.client import Client
from palestra.contract.queries import SeriesQuery, SeriesResult

_NUMBERS = ("points", "last env step", "last value")


def register(app: typer.Typer) -> None:
    """Adds the commands of this module to a group."""
    app.command("series")(show_series)
    app.command("filter-keys")(list_keys)


def show_series(
    ids: Ids = None,
    names: Annotated[
        list[str] | None, typer.Option("--name", help="Series to show, several times.")
    ] = None,
    wanted: Filter = "",
    by: Annotated[
        list[str] | None,
        typer.Option(help="Field of the definition to group by, several times: mean and n."),
    ] = None,
    x: Annotated[
        Literal["env_step", "update", "episode", "wall", "relative"], typer.Option(help="Axis.")
    ] = "env_step",
    start: Annotated[float | None, typer.Option(help="Lower end of the range on x.")] = None,
    end: Annotated[float | None, typer.Option(help="Upper end of the range on x.")] = None,
    buckets: Annotated[int, typer.Option(min=1, max=1_500, help="Buckets at most.")] = 20,
    project: Project = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Lists the series of a run, or with --name shows curves of runs in buckets."""
    if not names:
        if not ids or len(ids) > 1 or not ids[0].startswith("run_"):
            raise fail_usage("without --name give one run, whose series are listed")
        with connect(server, token_file, project) as client:
            return _list_series(client, ids[0], json=json)
    members: dict[str, Any] = {
        "runs": [one for one in ids or () if one.startswith("run_")],
        "experiments": [one for one in ids or () if not one.startswith("run_")],
        "filter": wanted,
        "names": names,
        "group_by": by or [],
        "show_runs": not by,
        "x": x,
        "start": start,
        "end": end,
        "buckets": buckets,
    }
    query = read_request(SeriesQuery, members, name_options({"group_by": "by", "names": "name"}))
    with connect(server, token_file, project) as client:
        found = client.series(query)
    return emit_json(found) if json else _show_curves(found)


def _list_series(client: Client, run_id: str, *, json: bool) -> None:
    found = client.series_names(run_id)
    if json:
        return emit_json(found)
    cells = [
        (one.name, one.points, _write(one.last_env_step), _write(one.last_value)) for one in found
    ]
    return show(build_table(("series", *_NUMBERS), cells, numbers=_NUMBERS))


def _show_curves(found: SeriesResult) -> None:
    """Prints a table per curve or group: centre of the bucket, mean, and number of points or runs.

    Buckets without a value are left out.
    """
    curves = [(f"{one.series} of {one.run_id}", one.mean, one.n) for one in found.series]
    curves += [(f"{one.series} of {one.name}", one.mean, one.n) for one in found.groups]
    for title, means, counts in curves:
        say(title)
        cells = [
            (_write(at), _write(mean), n)
            for at, mean, n in zip(found.grid, means, counts, strict=True)
            if mean is not None
        ]
        show(build_table((found.x, "mean", "n"), cells, numbers=(found.x, "mean", "n")))


def list_keys(
    wanted: Filter = "",
    project: Project = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Lists the keys that --filter, --sort, --columns and --group of runs may name."""
    with connect(server, token_file, project) as client:
        found = client.run_keys(filter=wanted)
    if json:
        return emit_json(found)
    reached = [f"reached.{name}" for name in found.thresholds]
    for key in (*(one.name for one in found.fields), *found.members, *found.series, *reached):
        say(key)
    if found.searched_runs is not None:
        say(
            f"The series are those of the newest {found.searched_runs:,} runs that the filter "
            "finds: older ones may have others. A narrower --filter finds fewer runs."
        )
    elif not found.is_complete:
        say("There are more: --filter narrows the runs whose keys are listed.")
    return None


def _write(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, int | float) else "-"
