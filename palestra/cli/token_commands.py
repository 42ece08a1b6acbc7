"""Commands of credentials: `palestra tokens ...` and `palestra service-accounts ...`."""

from typing import Annotated

import typer

from palestra.cli.output import (
    build_table,
    emit_json,
    out,
    remove_control_characters,
    say,
    show,
    warn,
)
from palestra.cli.request_documents import read_request
from palestra.cli.server_address import Json, Server, TokenFile, connect
from palestra.contract.access import TokenRequest, TokenRotation, TokenView
from palestra.contract.names import Scope
from palestra.contract.permissions import Role
from palestra.contract.service_accounts import ServiceAccountRequest

Slug = Annotated[str, typer.Argument(metavar="PROJECT", help="Slug of a project.")]
Account = Annotated[str, typer.Argument(metavar="ACCOUNT", help="Name of a service account.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="What the token is for.")]
Token = Annotated[str, typer.Argument(metavar="TOKEN", help="ID of a token.")]
Scopes = Annotated[
    list[Scope], typer.Option("--scope", help="What it may do; give it once for each scope.")
]
Days = Annotated[int, typer.Option(min=1, max=3_650, help="Days until it expires.")]


def register(app: typer.Typer) -> None:
    """Adds the commands of this module to a group."""
    tokens = typer.Typer(
        help="Creates, rotates and revokes API tokens.", no_args_is_help=True, rich_markup_mode=None
    )
    tokens.command("list")(list_tokens)
    tokens.command("create")(create)
    tokens.command("rotate")(rotate)
    tokens.command("revoke")(revoke)
    app.add_typer(tokens, name="tokens")
    accounts = typer.Typer(
        help="Manages the users for programs of a project.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    accounts.command("list")(list_accounts)
    accounts.command("create")(create_account)
    accounts.command("delete")(delete_account)
    accounts.command("token")(create_account_token)
    app.add_typer(accounts, name="service-accounts")


def list_tokens(server: Server = None, token_file: TokenFile = None, json: Json = False) -> None:
    """Lists your tokens, and those of the projects that you maintain."""
    with connect(server, token_file) as client:
        rows = list(client.tokens())
    if json:
        return emit_json(rows)
    cells = [
        (
            row.id,
            remove_control_characters(row.name),
            row.user,
            row.project or "all",
            " ".join(row.scopes),
            "never" if row.expires_at is None else f"{row.expires_at:%Y-%m-%d}",
            "-" if row.last_used_at is None else f"{row.last_used_at:%Y-%m-%d %H:%M}",
            row.last_used_address or "-",
            "" if row.revoked_at is None else "revoked",
        )
        for row in rows
    ]
    headings = (
        "token",
        "name",
        "user",
        "project",
        "scopes",
        "expires",
        "last used",
        "from",
        "state",
    )
    return show(build_table(headings, cells))


def create(
    name: Name,
    scope: Scopes,
    only: Annotated[
        str | None, typer.Option("--only", metavar="PROJECT", help="Limit it to one project.")
    ] = None,
    days: Days = 90,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Creates a token of yours and prints its secret, which is not shown again."""
    request = _request(name, scope, days, project=only)
    with connect(server, token_file) as client:
        made = client.create_token(request)
    _print_secret(made, json=json)


def rotate(
    token: Token,
    overlap_hours: Annotated[
        int, typer.Option(min=0, max=720, help="Hours for which the old secret stays valid.")
    ] = 24,
    days: Annotated[
        int | None, typer.Option(min=1, max=3_650, help="New days until it expires.")
    ] = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Gives a token a new secret and prints it; it is not shown again."""
    rotation = TokenRotation(overlap_hours=overlap_hours, expires_in_days=days)
    with connect(server, token_file) as client:
        made = client.rotate_token(token, rotation)
    _print_secret(made, json=json)


def revoke(
    token: Token, server: Server = None, token_file: TokenFile = None, json: Json = False
) -> None:
    """Revokes a token at once, and all tokens that were created with it."""
    with connect(server, token_file) as client:
        client.revoke_token(token)
    emit_json({"revoked": token}) if json else say(f"revoked {token}")


def list_accounts(
    project: Slug, server: Server = None, token_file: TokenFile = None, json: Json = False
) -> None:
    """Lists the service accounts of a project."""
    with connect(server, token_file) as client:
        rows = list(client.service_accounts(project))
    if json:
        return emit_json(rows)
    cells = [
        (
            row.name,
            row.role,
            row.tokens,
            "-" if row.last_used_at is None else f"{row.last_used_at:%Y-%m-%d %H:%M}",
        )
        for row in rows
    ]
    headings = ("account", "role", "tokens", "last used")
    return show(build_table(headings, cells, numbers=("tokens",)))


def create_account(
    project: Slug,
    name: Account,
    role: Annotated[Role, typer.Option(help="viewer or member.")] = Role.MEMBER,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Creates a user for programs, which belongs to the project and cannot log in."""
    members = {"name": name, "role": role.value}
    request = read_request(ServiceAccountRequest, members, lambda fault: f"ACCOUNT {fault.message}")
    with connect(server, token_file) as client:
        made = client.create_service_account(project, request)
    emit_json(made) if json else say(f"created service account {made.name} of {project}")


def delete_account(
    project: Slug,
    name: Account,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Disables a service account for ever and revokes its tokens."""
    with connect(server, token_file) as client:
        client.delete_service_account(project, name)
    emit_json({"project": project, "deleted": name}) if json else say(f"deleted {name}")


def create_account_token(
    project: Slug,
    account: Account,
    name: Name,
    scope: Scopes,
    days: Days = 90,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Creates a token of a service account and prints its secret, which is not shown again."""
    request = _request(name, scope, days)
    with connect(server, token_file) as client:
        made = client.create_service_token(project, account, request)
    _print_secret(made, json=json)


def _request(
    name: str, scopes: list[Scope], days: int, *, project: str | None = None
) -> TokenRequest:
    members = {
        "name": name,
        "scopes": [scope.value for scope in scopes],
        "expires_in_days": days,
        "project": project,
    }
    return read_request(TokenRequest, members)


def _print_secret(made: TokenView, *, json: bool) -> None:
    """Prints the secret alone to standard output, so that a script can keep it."""
    if json:
        return emit_json(made)
    end = "never expires" if made.expires_at is None else f"expires {made.expires_at:%Y-%m-%d}"
    before = made.previous_until
    old = "" if before is None else f"; the old secret is valid until {before:%Y-%m-%d %H:%M} UTC"
    warn(f"{made.id} of {made.user} {end}{old}. Keep this secret, it is not shown again:")
    return out.out(made.secret, highlight=False)
