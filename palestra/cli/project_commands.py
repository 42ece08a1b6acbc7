"""Commands of projects: `palestra projects ...` and `palestra members ...`."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

from palestra.cli import deletion_commands
from palestra.cli.output import (
    build_table,
    emit_json,
    fail_usage,
    remove_control_characters,
    say,
    show,
)
from palestra.cli.request_documents import read_request
from palestra.cli.server_address import (
    ALL_PROJECTS,
    Json,
    Server,
    TokenFile,
    connect,
    find_server,
    read_remembered_project,
    remember_project,
)
from palestra.cli.sizes import format_bytes
from palestra.client import Client
from palestra.contract.permissions import Role
from palestra.contract.projects import ProjectChange, ProjectRequest, ProjectView

Slug = Annotated[str, typer.Argument(metavar="PROJECT", help="Slug of a project.")]
Person = Annotated[str, typer.Argument(metavar="USER", help="Login name of a user.")]
Description = Annotated[str | None, typer.Option(help="What the project is for.")]
StorageLimit = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Most stored files, for example 200G; none for no limit."),
]
_UNITS: Final = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def register(app: typer.Typer) -> None:
    """Adds the commands of this module to a group."""
    projects = typer.Typer(
        help="Lists, creates, changes and deletes projects.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    projects.command("list")(list_projects)
    projects.command("show")(show_project)
    projects.command("use")(use)
    projects.command("create")(create)
    projects.command("change")(change)
    projects.command("archive")(archive)
    projects.command("restore")(restore)
    deletion_commands.register(projects)
    app.add_typer(projects, name="projects")
    members = typer.Typer(
        help="Lists, adds and removes the members of a project.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    members.command("list")(list_members)
    members.command("set")(set_member)
    members.command("remove")(remove_member)
    app.add_typer(members, name="members")


def list_projects(server: Server = None, token_file: TokenFile = None, json: Json = False) -> None:
    """Lists projects: yours, or all of them for an administrator of the server."""
    with connect(server, token_file) as client:
        rows = list(client.projects())
    emit_json(rows) if json else _show(rows)


def show_project(
    project: Slug, server: Server = None, token_file: TokenFile = None, json: Json = False
) -> None:
    """Shows a project: what it holds, its storage and your role."""
    with connect(server, token_file) as client:
        found = client.project_view(project)
    _print(found, json=json)


def use(
    project: Annotated[
        str | None,
        typer.Argument(metavar="[PROJECT]", help="Slug of a project; * for all of yours."),
    ] = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Sets the project of later commands for this server, or shows which one it is."""
    url, token = find_server(server, token_file)
    if project is None:
        kept = read_remembered_project(url)
    elif project == ALL_PROJECTS:
        kept = None
        remember_project(url, None)
    else:
        with Client(url, token) as client:
            kept = client.project_view(project).slug
        remember_project(url, kept)
    if json:
        return emit_json({"server": url, "project": kept})
    return say(f"commands for {url} use {'all your projects' if kept is None else kept}")


def create(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    slug: Annotated[
        str | None, typer.Option(help="Its name in addresses; made of NAME by default.")
    ] = None,
    description: Description = None,
    storage_limit: StorageLimit = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Creates a project; you become a maintainer. For administrators of the server."""
    request = read_request(
        ProjectRequest,
        {
            "name": name,
            "slug": slug,
            "description": description or "",
            "storage_limit": None if storage_limit is None else _parse_bytes(storage_limit),
        },
    )
    with connect(server, token_file) as client:
        made = client.create_project(request)
    emit_json(made) if json else say(f"created project {made.slug}")


def change(
    project: Slug,
    name: Annotated[str | None, typer.Option(help="Its new name; the slug stays.")] = None,
    description: Description = None,
    storage_limit: StorageLimit = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Renames or describes a project, or sets its storage limit."""
    wanted: dict[str, Any] = {"name": name, "description": description}
    wanted = {member: value for member, value in wanted.items() if value is not None}
    if storage_limit is not None:
        wanted["storage_limit"] = _parse_bytes(storage_limit)
    if not wanted:
        fail_usage("nothing to change: give --name, --description or --storage-limit")
    with connect(server, token_file) as client:
        found = client.change_project(project, read_request(ProjectChange, wanted))
    _print(found, json=json)


def archive(
    project: Slug, server: Server = None, token_file: TokenFile = None, json: Json = False
) -> None:
    """Archives a project: nothing can be submitted to it; its running jobs continue."""
    with connect(server, token_file) as client:
        found = client.archive_project(project)
    emit_json(found) if json else say(f"archived project {found.slug}")


def restore(
    project: Slug, server: Server = None, token_file: TokenFile = None, json: Json = False
) -> None:
    """Opens an archived project again."""
    with connect(server, token_file) as client:
        found = client.restore_project(project)
    emit_json(found) if json else say(f"restored project {found.slug}")


def list_members(
    project: Slug, server: Server = None, token_file: TokenFile = None, json: Json = False
) -> None:
    """Lists the members of a project with their roles."""
    with connect(server, token_file) as client:
        rows = list(client.members(project))
    if json:
        return emit_json(rows)
    cells = [
        (
            row.user,
            remove_control_characters(row.display_name),
            row.role,
            f"{row.since:%Y-%m-%d}",
            ", ".join(
                word
                for word, holds in (
                    ("disabled", row.disabled),
                    ("service account", row.service_account),
                )
                if holds
            ),
        )
        for row in rows
    ]
    return show(build_table(("user", "name", "role", "since", "notes"), cells))


def set_member(
    project: Slug,
    user: Person,
    role: Annotated[Role, typer.Argument(metavar="ROLE", help="viewer, member or maintainer.")],
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Adds a user to a project, or gives a member another role."""
    with connect(server, token_file) as client:
        found = client.set_member(project, user, role)
    emit_json(found) if json else say(f"{found.user} is now a {found.role} of {project}")


def remove_member(
    project: Slug,
    user: Person,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Removes a member; the member's experiments stay and their jobs continue."""
    with connect(server, token_file) as client:
        client.remove_member(project, user)
    emit_json({"project": project, "removed": user}) if json else say(f"removed {user}")


def _show(rows: Sequence[ProjectView]) -> None:
    cells = [
        (
            row.slug,
            remove_control_characters(row.name),
            row.role or "-",
            row.members,
            row.experiments,
            row.runs,
            row.jobs,
            format_bytes(row.storage_used),
            "-" if row.storage_limit is None else format_bytes(row.storage_limit),
            "" if row.archived_at is None else "archived",
        )
        for row in rows
    ]
    counts = ("members", "experiments", "runs", "jobs", "stored", "limit")
    show(build_table(("project", "name", "role", *counts, "state"), cells, numbers=counts))


def _print(found: ProjectView, *, json: bool) -> None:
    if json:
        return emit_json(found)
    _show([found])
    if found.description:
        say(remove_control_characters(found.description))
    return None


def _parse_bytes(text: str) -> int | None:
    """Returns the bytes that a size names: a number with K, M, G or T; `None` for `none`."""
    if text == "none":
        return None
    number, unit = (text[:-1], text[-1:].upper()) if text[-1:].isalpha() else (text, "")
    try:
        return int(float(number) * _UNITS[unit])
    except (ValueError, KeyError, OverflowError):
        fail_usage(f"--storage-limit {text}: give a size such as 500M or 200G, or none")
