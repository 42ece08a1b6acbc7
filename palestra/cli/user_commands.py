"""Commands that manage users: `palestra users ...`."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import typer

from palestra.cli import invitation_commands
from palestra.cli.invitation_commands import format_roles
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
from palestra.contract.people import (
    AccountChange,
    DisableRequest,
    JobsOfUser,
    UserChange,
    UserDetail,
    UserState,
    UserView,
)

Change = TypeVar("Change", bound=AccountChange)
Person = Annotated[str, typer.Argument(metavar="USER", help="Login name or ID.")]


def register(app: typer.Typer) -> None:
    """Adds the commands of this module to a group."""
    users = typer.Typer(
        help="Invites and manages users.", no_args_is_help=True, rich_markup_mode=None
    )
    users.command("list")(list_users)
    users.command("show")(show_user)
    users.command("set")(change)
    users.command("disable")(disable)
    users.command("enable")(enable)
    users.command("reset-password")(reset_password)
    users.command("sign-out")(sign_out)
    users.command("delete")(delete)
    invitation_commands.register(users)
    app.add_typer(users, name="users")


def list_users(
    text: Annotated[
        str | None, typer.Argument(metavar="[TEXT]", help="Part of a name or e-mail address.")
    ] = None,
    state: Annotated[UserState | None, typer.Option(help="Only these.")] = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Lists people."""
    with connect(server, token_file) as client:
        rows = list(client.users(text=text, state=state))
    if json:
        return emit_json(rows)
    headings = ("name", "display name", "e-mail", "state", "admin", "projects", "last used")
    return show(build_table(headings, [_cells(row) for row in rows]))


def _cells(row: UserView) -> tuple[str, ...]:
    return (
        row.name,
        remove_control_characters(row.display_name or "-"),
        remove_control_characters(row.email or "-"),
        row.state,
        "yes" if row.is_admin else "no",
        format_roles(row.projects),
        "never" if row.last_used_at is None else f"{row.last_used_at:%Y-%m-%d %H:%M}",
    )


def show_user(
    user: Person, server: Server = None, token_file: TokenFile = None, json: Json = False
) -> None:
    """Shows a person and what the person owns."""
    with connect(server, token_file) as client:
        found = client.user(user)
    emit_json(found) if json else _show(found)


def _show(found: UserDetail) -> None:
    headings = ("name", "display name", "e-mail", "state", "admin", "projects", "last used")
    owned = ", ".join(f"{name} {count}" for name, count in found.owned.model_dump().items())
    show(build_table((*headings, "owns"), [(*_cells(found), owned.replace("_", " "))]))


def change(
    user: Person,
    display_name: Annotated[
        str | None, typer.Option(help="Shown instead of the login name; empty for none.")
    ] = None,
    email: Annotated[str | None, typer.Option(help="Empty for none.")] = None,
    admin: Annotated[
        bool | None, typer.Option("--admin/--no-admin", help="Administrator of the server.")
    ] = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Changes a person's display name, e-mail address, or right to administer the server."""
    given = {"display_name": display_name, "email": email, "is_admin": admin}
    request = build_change(UserChange, given)
    with connect(server, token_file) as client:
        found = client.change_user(user, request)
    emit_json(found) if json else _show(found)


def build_change(kind: type[Change], options: Mapping[str, Any]) -> Change:
    """Returns the request for the change that the options of a command describe.

    An option that was not named is `None`; an empty text removes the member.
    """
    given = {
        name: None if value == "" else value for name, value in options.items() if value is not None
    }
    if not given:
        fail_usage("nothing to change: name at least one option; --help lists them")
    return read_request(
        kind,
        given,
        lambda fault: f"--{fault.pointer.removeprefix('/').replace('_', '-')} {fault.message}",
    )


def disable(
    user: Person,
    jobs: Annotated[
        JobsOfUser, typer.Option(help="What becomes of jobs that have not ended.")
    ] = "keep",
    transfer_to: Annotated[
        str | None, typer.Option(metavar="USER", help="With --jobs transfer.")
    ] = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Ends a person's logins, tokens and streams; workers and running attempts go on."""
    if (jobs == "transfer") != (transfer_to is not None):
        fail_usage("--jobs transfer and --transfer-to USER belong together")
    with connect(server, token_file) as client:
        done = client.disable_user(user, DisableRequest(jobs=jobs, transfer_to=transfer_to))
    if json:
        return emit_json(done)
    endings = {
        "keep": "which go on",
        "pause": f"{done.changed_jobs} paused",
        "cancel": f"{done.changed_jobs} cancelled",
        "transfer": f"{done.changed_jobs} transferred to {transfer_to}",
    }
    return say(f"{done.user.name} is disabled; {done.live_jobs} unfinished jobs, {endings[jobs]}")


def enable(
    user: Person, server: Server = None, token_file: TokenFile = None, json: Json = False
) -> None:
    """Lets a disabled person log in again."""
    with connect(server, token_file) as client:
        found = client.enable_user(user)
    emit_json(found) if json else say(f"{found.name} may log in again")


def reset_password(
    user: Person, server: Server = None, token_file: TokenFile = None, json: Json = False
) -> None:
    """Prints a one-time link with which a person sets a new password."""
    with connect(server, token_file) as client:
        link = client.reset_password(user)
    emit_json(link) if json else say(f"{link.url} (good for {link.expires_in_seconds:,.0f} s)")


def sign_out(
    user: Person, server: Server = None, token_file: TokenFile = None, json: Json = False
) -> None:
    """Ends all browser logins of a person; tokens stay."""
    with connect(server, token_file) as client:
        done = client.sign_out_user(user)
    emit_json(done) if json else say(f"{done.ended_sessions} logins ended")


def delete(
    user: Person,
    transfer_to: Annotated[
        str | None, typer.Option(metavar="USER", help="Who gets what the person owns.")
    ] = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Deletes a person; runs and other objects go to another user, the audit log stays."""
    with connect(server, token_file) as client:
        done = client.delete_user(user, transfer_to=transfer_to)
    if json:
        return emit_json(done)
    moved = ", ".join(f"{count} {name}" for name, count in done.transferred.items())
    return say(f"{user} is deleted" + (f"; {done.transferred_to} got {moved}" if moved else ""))
