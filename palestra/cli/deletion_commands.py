"""Commands that delete and restore projects: `palestra projects delete | deleted | undelete`."""

import sys
from typing import Annotated

import typer

from palestra.cli.output import (
    CommandError,
    build_table,
    emit_json,
    remove_control_characters,
    say,
    show,
)
from palestra.cli.server_address import Json, Server, TokenFile, connect
from palestra.cli.sizes import format_bytes

Slug = Annotated[str, typer.Argument(metavar="PROJECT", help="Slug of a project.")]


def register(projects: typer.Typer) -> None:
    """Adds the commands to `palestra projects`."""
    projects.command("delete")(delete)
    projects.command("deleted")(list_deleted)
    projects.command("undelete")(undelete)


def delete(
    project: Slug,
    yes: Annotated[
        str | None,
        typer.Option(metavar="PROJECT", help="Confirms with the slug again, without a question."),
    ] = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Deletes an archived project: hides it and cancels its jobs.

    An administrator of the server can restore it for a while.
    """
    with connect(server, token_file) as client:
        typed = yes if yes is not None else _ask(project)
        done = client.delete_project(project, confirm=typed)
    if json:
        return emit_json(done)
    return say(
        f"deleted project {done.slug}; {done.unfinished_jobs} jobs are ending; an administrator "
        f"of the server can restore it until {done.restorable_until:%Y-%m-%d %H:%M} UTC"
    )


def _ask(project: str) -> str:
    if not sys.stdin.isatty():
        raise CommandError(f"nobody to ask: confirm with --yes {project}")
    return str(typer.prompt(f"Type {project} to delete the project")).strip()


def list_deleted(server: Server = None, token_file: TokenFile = None, json: Json = False) -> None:
    """Lists deleted projects. For administrators of the server."""
    with connect(server, token_file) as client:
        rows = list(client.deleted_projects())
    if json:
        return emit_json(rows)
    cells = [
        (
            row.slug,
            remove_control_characters(row.name),
            f"{row.deleted_at:%Y-%m-%d %H:%M}",
            row.deleted_by or "-",
            f"{row.restorable_until:%Y-%m-%d %H:%M}"
            if row.removal_started_at is None
            else "no: being removed",
            row.unfinished_jobs,
            row.runs,
            format_bytes(row.storage_used),
        )
        for row in rows
    ]
    headings = ("project", "name", "deleted", "by", "restorable until", "ending jobs", "runs")
    numbers = ("ending jobs", "runs", "stored")
    return show(build_table((*headings, "stored"), cells, numbers=numbers))


def undelete(
    project: Slug, server: Server = None, token_file: TokenFile = None, json: Json = False
) -> None:
    """Restores a deleted project; it is archived. For administrators of the server."""
    with connect(server, token_file) as client:
        found = client.undelete_project(project)
    emit_json(found) if json else say(f"restored project {found.slug}; it is archived")
