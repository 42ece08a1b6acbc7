"""`palestra join`: becomes a user by an invitation, and stores a token of that user."""

from typing import Annotated, Any

import typer

from palestra.cli.invitation_commands import format_roles
from palestra.cli.login import store_login
from palestra.cli.output import CommandError, fail_usage, remove_control_characters, say
from palestra.cli.passwords import PasswordStdin, ask_password, require_input
from palestra.cli.request_documents import read_request
from palestra.cli.server_address import (
    Json,
    keep_login,
    read_server_address,
    require_writable_logins,
)
from palestra.contract.access import LinkPreview, SetupRequest
from palestra.errors import TokenNotMadeError, UnreachableError
from palestra.sign_in import InvitationLink, build_token_request, join, preview_link


def register(app: typer.Typer) -> None:
    """Adds the command of this module to a group."""
    app.command("join")(join_server)


def join_server(
    link: Annotated[str, typer.Argument(metavar="LINK", help="Link of the invitation, in quotes.")],
    user: Annotated[
        str | None, typer.Option(help="Login name; asked for where the invitation has none.")
    ] = None,
    password_stdin: PasswordStdin = False,
    server: Annotated[
        str | None,
        typer.Option("--server", help="Address, where that of the link is not reached from here."),
    ] = None,
    json: Json = False,
) -> None:
    """Becomes a user by an invitation, and stores an API token as `palestra login` does.

    Asks for a new password twice, without echo; the dashboard takes it too.
    """
    try:
        place = InvitationLink.read(link)
    except ValueError as error:
        fail_usage(str(error))
    if server is not None:
        place = InvitationLink(read_server_address(server), place.code)
    require_input(from_stdin=password_stdin)
    require_writable_logins()
    found = preview_link(place.server, SetupRequest(code=place.code))
    if found.kind != "invitation":
        fail_usage("this link logs a user in who exists: open it in a browser")
    if not json:
        say(_describe(found, place.server))
    request = _build_request(place, found, user, from_stdin=password_stdin)
    token = _join(place.server, request, request.user or found.user or "NAME")
    keep_login(place.server, token)
    store_login(place.server, token, json=json)
    if not json:
        say(
            "next: `palestra projects list` shows where you may submit, and `palestra submit FILE` "
            f"submits. {place.server} takes the same name and password."
        )


def _describe(found: LinkPreview, server: str) -> str:
    by = "" if found.invited_by is None else f" by {remove_control_characters(found.invited_by)}"
    what = "an administrator" if found.is_admin else "a user"
    return f"invited{by} as {what} of {server}; projects: {format_roles(found.projects)}"


def _build_request(
    place: InvitationLink, found: LinkPreview, user: str | None, *, from_stdin: bool
) -> SetupRequest:
    """Returns the request that redeems the link, which the server has checked."""
    name = user
    if name is None and found.user is None:
        if from_stdin:
            fail_usage("the invitation has no login name: give one with --user")
        name = str(typer.prompt("Login name"))
    password = ask_password("New password", twice=True, from_stdin=from_stdin)
    members: dict[str, Any] = {"code": place.code, "user": name, "password": password}
    request = read_request(SetupRequest, members)
    for problem in preview_link(place.server, request).problems:
        field = problem.pointer.removeprefix("/")
        raise CommandError(f"{field}: {problem.message}. The link is good still: run this again")
    return request


def _join(server: str, request: SetupRequest, user: str) -> str:
    """Redeems the link; returns the secret of the new token."""
    try:
        return join(server, request, build_token_request()).secret or ""
    except TokenNotMadeError as error:
        raise CommandError(
            f"you are a user of {server} now: {error.user}. No token was made: {error} "
            f"`palestra login {server} --user {error.user}` makes one."
        ) from None
    except UnreachableError as error:
        raise CommandError(
            f"{error}. The invitation may be used by now: run this again and, if it says so, "
            f"`palestra login {server} --user {user}`"
        ) from None
