"""`palestra login`: stores a token for a server."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from palestra.cli.output import ask_secret, emit_json, say, usage
from palestra.cli.server_address import (
    Json,
    keep_login,
    read_token,
    remember_project,
    remembered_project,
)
from palestra.client import Client


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(login)


def login(
    server: Annotated[str, typer.Argument(metavar="URL", help="Address of the server.")],
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="File with the token; asked for by default.")
    ] = None,
    json: Json = False,
) -> None:
    """Checks and stores an API token; other commands then need neither address nor token."""
    if not server.startswith(("http://", "https://")):
        usage(f"{server}: give an address that begins with https:// or http://")
    token = read_token(token_file) if token_file else ask_secret("API token")
    if not token:
        usage(
            "no token: make one in the dashboard, or with `python -m app.admin token` on the "
            "server's machine"
        )
    with Client(server, token) as client:
        session = client.session()
    url = server.rstrip("/")
    path = keep_login(url, token)
    slugs = [one.slug for one in session.projects]
    kept = remembered_project(url)
    if kept is not None and kept not in slugs:
        remember_project(url, None)
        kept = None
    if json:
        emit_json(
            {
                "server": server,
                "user": session.user,
                "project": session.project,
                "scopes": list(session.scopes),
            }
        )
    else:
        say(f"logged in to {server} as {session.user}, {_projects(slugs, kept)} (kept in {path})")


def _projects(slugs: Sequence[str], kept: str | None) -> str:
    """Returns which projects commands will use, as words."""
    if kept is not None or len(slugs) == 1:
        return f"project {kept or slugs[0]}"
    if not slugs:
        return "a member of no project"
    return f"projects {', '.join(slugs)}; `palestra projects use PROJECT` chooses one"
