"""Commands of saved views of the page of runs: `palestra views ...`."""

from typing import Annotated, Any

import typer

from palestra.cli.list_options import check_filter, split_keys
from palestra.cli.output import (
    build_table,
    emit_json,
    fail_usage,
    out,
    remove_control_characters,
    say,
    show,
    warn,
)
from palestra.cli.request_documents import read_request
from palestra.cli.server_address import Json, Project, Server, TokenFile, connect, find_server
from palestra.client import Client
from palestra.contract.problems import suggest_nearest
from palestra.contract.saved_views import (
    RunsPageState,
    SavedViewChange,
    SavedViewDetail,
    SavedViewRequest,
    ViewVisibility,
)
from palestra.contract.views import FieldProblem

ViewId = Annotated[str, typer.Argument(metavar="VIEW", help="ID or name of a view.")]
Filter = Annotated[str | None, typer.Option("--filter", help="A filter, as of `palestra runs`.")]
Sort = Annotated[str | None, typer.Option("--sort", help="Its order, as of `palestra runs`.")]
Columns = Annotated[str | None, typer.Option("--columns", help="Its columns, with commas.")]
Group = Annotated[str | None, typer.Option("--group", help="Keys of its groups, with commas.")]
Share = Annotated[
    bool | None,
    typer.Option("--share/--private", help="For all members of the project, or for you alone."),
]


def register(app: typer.Typer) -> None:
    """Adds the commands of this module to a group."""
    views = typer.Typer(
        help="Lists, shows, saves, changes and deletes saved views of runs.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    views.command("list")(list_views)
    views.command("show")(show_view)
    views.command("save")(save)
    views.command("change")(change)
    views.command("delete")(delete)
    app.add_typer(views, name="views")


def list_views(
    project: Project = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Lists your views, and those that others share with the project."""
    with connect(server, token_file, project) as client:
        rows = list(client.views())
    if json:
        return emit_json(rows)
    cells = [
        (
            row.id,
            remove_control_characters(row.name),
            row.owner,
            row.visibility,
            remove_control_characters(row.state.filter),
            ",".join(row.state.group_by),
        )
        for row in rows
    ]
    return show(build_table(("view", "name", "owner", "for", "filter", "groups"), cells))


def _find_id(client: Client, view: str) -> str:
    """Returns the ID of a view that is given by its ID or by its name."""
    if view.startswith("viw_"):
        return view
    found = list(client.views())
    named = [one.id for one in found if one.name == view]
    if len(named) == 1:
        return named[0]
    if named:
        fail_usage(f"several views have this name; give an ID: {', '.join(named)}")
    near = suggest_nearest(view[:64], [one.name for one in found])
    raise fail_usage(f"no view has this ID or name{near}; `palestra views list` lists them")


def show_view(
    view: ViewId, server: Server = None, token_file: TokenFile = None, json: Json = False
) -> None:
    """Shows a view with its address, and names what of it no longer exists."""
    with connect(server, token_file) as client:
        found = client.view(_find_id(client, view))
    if json:
        return emit_json(found)
    state = found.usable_state
    say(f"{found.name}  by {found.owner}, {found.visibility}")
    say(f"{find_server(server, token_file)[0]}/runs?view={found.id}")
    for name in ("filter", "sort", "columns", "group_by"):
        value = getattr(state, name)
        if value:
            written = value if isinstance(value, str) else ",".join(value)
            out.out(f"{name}: {remove_control_characters(written)}", highlight=False)
    for problem in found.problems:
        warn(f"left out: {remove_control_characters(problem.message)}")
    return None


def save(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    filters: Filter = None,
    sort: Sort = None,
    columns: Columns = None,
    group: Group = None,
    share: Share = None,
    project: Project = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Saves a view of the page of runs."""
    visibility = ViewVisibility.PROJECT if share else ViewVisibility.PRIVATE
    members = {
        "name": name,
        "visibility": visibility,
        "state": _build_state({}, filters, sort, columns, group),
    }
    request = read_request(SavedViewRequest, members, _sentence)
    with connect(server, token_file, project) as client:
        made = client.save_view(request)
    _print(made, "saved", json=json)


def change(
    view: ViewId,
    name: Annotated[str | None, typer.Option("--name", help="Another name.")] = None,
    filters: Filter = None,
    sort: Sort = None,
    columns: Columns = None,
    group: Group = None,
    share: Share = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Changes a view; what is not given stays as it is."""
    options = (filters, sort, columns, group)
    members: dict[str, Any] = {} if name is None else {"name": name}
    if share is not None:
        members["visibility"] = ViewVisibility.PROJECT if share else ViewVisibility.PRIVATE
    with connect(server, token_file) as client:
        view = _find_id(client, view)
        if any(one is not None for one in options):
            before = client.view(view).state.model_dump(mode="json")
            members["state"] = _build_state(before, *options)
        if not members:
            fail_usage("give what to change: --name, --filter, --sort, --columns, --group, --share")
        changed = client.change_view(view, read_request(SavedViewChange, members, _sentence))
    _print(changed, "changed", json=json)


def delete(
    view: ViewId, server: Server = None, token_file: TokenFile = None, json: Json = False
) -> None:
    """Deletes a view."""
    with connect(server, token_file) as client:
        view = _find_id(client, view)
        client.delete_view(view)
    emit_json({"view": view, "deleted": True}) if json else say(f"deleted {view}")


def _build_state(
    before: dict[str, Any],
    filters: str | None,
    sort: str | None,
    columns: str | None,
    group: str | None,
) -> dict[str, Any]:
    if filters is not None:
        check_filter(filters, "runs")
    given = {
        "filter": filters,
        "sort": sort,
        "columns": None if columns is None else split_keys(columns),
        "group_by": None if group is None else split_keys(group),
    }
    state = {**before, **{name: value for name, value in given.items() if value is not None}}
    return RunsPageState.model_construct(**state).model_dump(mode="json", warnings=False)


def _print(view: SavedViewDetail, what: str, *, json: bool) -> None:
    if json:
        return emit_json(view)
    say(f"{what} {view.id}: {view.name}")
    for problem in view.problems:
        warn(f"left out: {remove_control_characters(problem.message)}")
    return None


def _sentence(fault: FieldProblem) -> str:
    return f"{fault.pointer.removeprefix('/').replace('state/', '--')}: {fault.message}"
