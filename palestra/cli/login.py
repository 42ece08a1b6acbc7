"""`palestra login`: stores a token for a server."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from palestra.cli.output import CommandError, ask_secret, emit_json, fail_usage, say
from palestra.cli.passwords import PasswordStdin, ask_password, require_input
from palestra.cli.request_documents import read_request
from palestra.cli.server_address import (
    Json,
    keep_login,
    read_remembered_project,
    read_server_address,
    read_token,
    remember_project,
    require_writable_logins,
)
from palestra.client import Client
from palestra.contract.access import LoginRequest
from palestra.errors import TokenNotMadeError
from palestra.sign_in import build_token_request, log_in


def register(app: typer.Typer) -> None:
    """Adds the command of this module to a group."""
    app.command()(login)


def login(
    server: Annotated[str, typer.Argument(metavar="URL", help="Address of the server.")],
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="File with the token; asked for by default.")
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(help="Log this user in by password, and make a token for this machine."),
    ] = None,
    password_stdin: PasswordStdin = False,
    json: Json = False,
) -> None:
    """Checks and stores an API token; other commands then need neither address nor token."""
    url = read_server_address(server)
    if user is not None:
        if token_file is not None:
            fail_usage("--user makes a token: leave --token-file out")
        token = _new_token(url, user, from_stdin=password_stdin)
    else:
        token = read_token(token_file) if token_file else ask_secret("API token")
    if not token:
        fail_usage(
            "no token: make one in the dashboard, or with --user NAME, which asks for the password"
        )
    store_login(url, token, json=json)


def _new_token(url: str, user: str, *, from_stdin: bool) -> str:
    require_input(from_stdin=from_stdin)
    require_writable_logins()
    password = ask_password("Password", twice=False, from_stdin=from_stdin)
    request = read_request(LoginRequest, {"user": user, "password": password})
    try:
        return log_in(url, request, build_token_request()).secret or ""
    except TokenNotMadeError as error:
        raise CommandError(f"the password is right, and no token was made: {error}") from None


def store_login(url: str, token: str, *, json: bool) -> None:
    """Checks a token, stores it for later commands, and prints the name of its user."""
    with Client(url, token) as client:
        session = client.session()
    path = keep_login(url, token)
    slugs = [one.slug for one in session.projects]
    kept = read_remembered_project(url)
    if kept is not None and kept not in slugs:
        remember_project(url, None)
        kept = None
    if json:
        emit_json(
            {
                "server": url,
                "user": session.user,
                "project": session.project,
                "scopes": list(session.scopes),
            }
        )
    else:
        covered = _describe_projects(slugs, kept)
        say(f"logged in to {url} as {session.user}, {covered} (kept in {path})")


def _describe_projects(slugs: Sequence[str], kept: str | None) -> str:
    """Returns which projects commands will use, as words."""
    if kept is not None or len(slugs) == 1:
        return f"project {kept or slugs[0]}"
    if not slugs:
        return "a member of no project"
    return f"projects {', '.join(slugs)}; `palestra projects use PROJECT` chooses one"
