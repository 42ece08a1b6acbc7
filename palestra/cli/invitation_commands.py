"""Commands of invitations: `palestra users invite | invitations | revoke-invitation`."""

from collections.abc import Sequence
from typing import Annotated

import typer

from palestra.cli.output import (
    build_table,
    emit_json,
    fail_usage,
    remove_control_characters,
    say,
    show,
)
from palestra.cli.request_documents import read_request
from palestra.cli.server_address import Json, Server, TokenFile, connect
from palestra.contract.people import InvitationView, InviteRequest, UserProjectView
from palestra.contract.permissions import Role
from palestra.contract.views import FieldProblem


def register(users: typer.Typer) -> None:
    """Adds the commands to `palestra users`."""
    users.command("invite")(invite)
    users.command("invitations")(list_invitations)
    users.command("revoke-invitation")(revoke_invitation)


def invite(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Login names; without one, the person chooses."),
    ] = None,
    display_name: Annotated[str | None, typer.Option(help="For one person.")] = None,
    email: Annotated[str | None, typer.Option(help="For one person.")] = None,
    admin: Annotated[bool, typer.Option("--admin", help="Administrator of the server.")] = False,
    project: Annotated[
        list[str] | None,
        typer.Option(metavar="PROJECT=ROLE", help="viewer, member or maintainer; repeatable."),
    ] = None,
    hours: Annotated[int, typer.Option(min=1, max=720, help="Life of the links.")] = 168,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Makes a one-time link for each person; the links are shown once."""
    if len(names or ()) > 1 and (display_name or email):
        fail_usage("--display-name and --email are for one person: run the command for each")
    shared = {
        "display_name": display_name,
        "email": email,
        "is_admin": admin,
        "projects": [_project_role(one) for one in project or ()],
    }
    wanted = [{**shared, "name": name} for name in names or (None,)]
    members = {"invitations": wanted, "expires_in_hours": hours}
    request = read_request(InviteRequest, members, _sentence)
    with connect(server, token_file) as client:
        made = client.invite(request)
    if json:
        return emit_json(made)
    for one in made:
        name = remove_control_characters(one.name or "somebody")
        say(f"{name}, until {one.expires_at:%Y-%m-%d %H:%M}: {one.url}")
    return None


def _project_role(text: str) -> dict[str, str]:
    slug, _, role = text.partition("=")
    if role not in set(Role):
        fail_usage(f"--project {text}: write PROJECT=ROLE, where ROLE is {', '.join(Role)}")
    return {"project": slug, "role": role}


def _sentence(fault: FieldProblem) -> str:
    parts = [part for part in fault.pointer.split("/")[1:] if not part.isdigit()]
    return f"{parts[-1] if parts else 'invitations'} {fault.message}"


def list_invitations(
    server: Server = None, token_file: TokenFile = None, json: Json = False
) -> None:
    """Lists invitations, newest first."""
    with connect(server, token_file) as client:
        rows = list(client.invitations())
    if json:
        return emit_json(rows)
    headings = ("id", "name", "state", "expires", "projects", "by", "became")
    return show(build_table(headings, [_cells(row) for row in rows]))


def _cells(row: InvitationView) -> tuple[str, ...]:
    return (
        row.id,
        remove_control_characters(row.name or row.display_name or row.email or "-"),
        row.state,
        f"{row.expires_at:%Y-%m-%d %H:%M}",
        format_roles(row.projects),
        row.created_by or "-",
        row.redeemed_by or "-",
    )


def format_roles(projects: Sequence[UserProjectView]) -> str:
    """Returns a user's projects with the roles, for a table."""
    return ", ".join(f"{one.slug}={one.role}" for one in projects) or "-"


def revoke_invitation(
    invitation: Annotated[str, typer.Argument(metavar="ID", help="ID of an invitation.")],
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Revokes an invitation that nobody has used."""
    with connect(server, token_file) as client:
        client.revoke_invitation(invitation)
    emit_json({"id": invitation, "state": "revoked"}) if json else say(f"{invitation} is revoked")
