"""`palestra login`: stores a token for a server."""

from pathlib import Path
from typing import Annotated

import typer

from palestra.cli.output import ask_secret, emit_json, say, usage
from palestra.cli.server_address import Json, keep_login, read_token
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
    path = keep_login(server.rstrip("/"), token)
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
        say(f"logged in to {server} as {session.user}, project {session.project} (kept in {path})")
