"""Commands of one's own account: `palestra account ...`."""

import sys
from typing import Annotated

import typer

from palestra.cli.invitation_commands import format_roles
from palestra.cli.output import build_table, emit_json, remove_control_characters, say, show
from palestra.cli.passwords import ask_password
from palestra.cli.server_address import Json, Server, TokenFile, connect
from palestra.cli.user_commands import build_change
from palestra.contract.account import AccountView, LoginSessionView
from palestra.contract.people import AccountChange
from palestra.contract.sizes import format_count

SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="ID of a browser login.")]


def register(app: typer.Typer) -> None:
    """Adds the commands of this module to a group."""
    account = typer.Typer(
        help="Shows and changes your own account.", no_args_is_help=True, rich_markup_mode=None
    )
    account.command("show")(show_account)
    account.command("set")(change)
    account.command("password")(set_password)
    account.command("sessions")(sessions)
    account.command("end-session")(end_session)
    account.command("sign-out")(sign_out)
    app.add_typer(account, name="account")


def show_account(server: Server = None, token_file: TokenFile = None, json: Json = False) -> None:
    """Shows your names, your e-mail address, whether you have a password, and your projects."""
    with connect(server, token_file) as client:
        found = client.account()
    emit_json(found) if json else _show(found)


def _show(found: AccountView) -> None:
    cells = (
        found.name,
        remove_control_characters(found.display_name or "-"),
        remove_control_characters(found.email or "-"),
        "yes" if found.is_admin else "no",
        "set" if found.has_password else "not set",
        format_roles(found.projects),
    )
    show(build_table(("name", "display name", "e-mail", "admin", "password", "projects"), [cells]))


def change(
    display_name: Annotated[
        str | None, typer.Option(help="Shown instead of the login name; empty for none.")
    ] = None,
    email: Annotated[str | None, typer.Option(help="Empty for none.")] = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Changes your display name or e-mail address."""
    request = build_change(AccountChange, {"display_name": display_name, "email": email})
    with connect(server, token_file) as client:
        found = client.change_account(request)
    emit_json(found) if json else _show(found)


def set_password(server: Server = None, token_file: TokenFile = None, json: Json = False) -> None:
    """Changes your password; all your browser logins end, tokens stay.

    Asks for the passwords at a terminal. Else it reads two lines from standard input: the current
    password and the new one.
    """
    with connect(server, token_file) as client:
        needs_current = client.account().current_password_needed
        is_terminal = sys.stdin.isatty()
        current = (
            ask_password("Current password", twice=False, from_stdin=not is_terminal)
            if needs_current
            else None
        )
        new = ask_password("New password", twice=True, from_stdin=not is_terminal)
        done = client.set_password(new, current)
    emit_json(done) if json else say(f"the password is changed; {_ended(done.ended_sessions)}")


def _ended(count: int) -> str:
    return f"{format_count(count, 'browser login')} ended"


def sessions(server: Server = None, token_file: TokenFile = None, json: Json = False) -> None:
    """Lists your browser logins that have not ended."""
    with connect(server, token_file) as client:
        rows = list(client.login_sessions())
    if json:
        return emit_json(rows)
    headings = ("session", "browser", "address", "opened", "by", "last used")
    return show(build_table(headings, [_cells(row) for row in rows]))


def _cells(row: LoginSessionView) -> tuple[str, ...]:
    return (
        row.id,
        remove_control_characters(row.browser or "-"),
        row.address or "-",
        f"{row.created_at:%Y-%m-%d %H:%M}",
        row.opened_by or "-",
        f"{row.last_used_at:%Y-%m-%d %H:%M}",
    )


def end_session(
    session: SessionId, server: Server = None, token_file: TokenFile = None, json: Json = False
) -> None:
    """Ends one of your browser logins."""
    with connect(server, token_file) as client:
        client.end_login_session(session)
    emit_json({"ended": session}) if json else say(f"{session} has ended")


def sign_out(server: Server = None, token_file: TokenFile = None, json: Json = False) -> None:
    """Ends all your browser logins and login links; tokens stay."""
    with connect(server, token_file) as client:
        done = client.sign_out()
    emit_json(done) if json else say(_ended(done.ended_sessions))
