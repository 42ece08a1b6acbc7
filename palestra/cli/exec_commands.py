"""Commands that replace their process by a program of the server or the worker.

`palestra server | daemons | worker`, `palestra db ...`, `palestra login-link`; also what
`palestra audit verify` needs.

The command's process turns into that program, so its signals, exit code and standard streams are
the program's own.
"""

import importlib.util
import os
import sys
from typing import Any, Final, NoReturn

import typer

from palestra.cli.output import CommandError
from palestra.cli.server_address import find_data_dir
from palestra.python_command import build_python_command

RAW: Final[dict[str, Any]] = {
    "context_settings": {
        "ignore_unknown_options": True,
        "allow_extra_args": True,
        "help_option_names": [],
    },
    "add_help_option": False,
}


def register(app: typer.Typer) -> None:
    """Adds the commands of this module to a group."""
    database = typer.Typer(
        help="Upgrades and vacuums the database.", no_args_is_help=True, rich_markup_mode=None
    )
    app.command(**RAW)(server)
    app.command(**RAW)(daemons)
    app.command(**RAW)(worker)
    app.command(name="login-link", **RAW)(login_link)
    database.command(**RAW)(upgrade)
    database.command(**RAW)(vacuum)
    app.add_typer(database, name="db")


def server(context: typer.Context) -> None:
    """Runs the server with its daemons; `palestra server --help` lists its options."""
    become("app.main", "server", [_as_log_format(argument) for argument in context.args])


def daemons(context: typer.Context) -> None:
    """Runs dispatcher, reaper, compactor and remover in a process without a server.

    Start the servers beside this process with `palestra server --no-daemons`.
    """
    become("app.daemons", "server", [_as_log_format(argument) for argument in context.args])


def worker(context: typer.Context) -> None:
    """Runs a worker; `palestra worker --help` lists its options."""
    become("workers.host", "worker", context.args)


def upgrade(context: typer.Context) -> None:
    """Applies the missing migrations to the database."""
    _keep_database("upgrade", context)


def vacuum(context: typer.Context) -> None:
    """Rewrites the SQLite file without the space of deleted rows; stop the server first.

    Needed once for a file made without auto_vacuum, such as one restored from an SQL dump: the
    server returns such space by itself then.
    """
    _keep_database("vacuum", context)


def _keep_database(command: str, context: typer.Context) -> NoReturn:
    arguments = (argument for argument in context.args if argument != "--json")
    become("app.db", "server", [command, *arguments])


def login_link(context: typer.Context) -> None:
    """Prints, as JSON, a one-time address that logs a browser in.

    The address is for the first admin, or for the user of --user; with --enable also for an
    administrator who is disabled.
    """
    run_admin("login-link", context.args, own="--user", flag="--enable")


def run_admin(command: str, arguments: list[str], *, own: str, flag: str | None = None) -> NoReturn:
    """Replaces this process by a command of `app.admin` on the data directory that is found here.

    Args:
        command: The command.
        arguments: Options of `app.admin` and of the command; `--json` is ignored.
        own: The option of the command itself, which stands after it.
        flag: An option without a value of the command itself.
    """
    place, own_part = _split_option(
        [argument for argument in arguments if argument not in {"--json", flag}], own
    )
    own_part += [argument for argument in arguments if argument == flag]
    if not names_place(place) and (data := find_data_dir()) is not None:
        place += ["--data-dir", str(data.root)]
    become("app.admin", "server", [*place, command, *own_part])


def _split_option(arguments: list[str], option: str) -> tuple[list[str], list[str]]:
    """Removes an option and its value from the arguments, and returns them apart."""
    for index, argument in enumerate(arguments):
        if argument == option or argument.startswith(f"{option}="):
            end = index + (2 if argument == option else 1)
            return arguments[:index] + arguments[end:], arguments[index:end]
    return arguments, []


def names_place(arguments: list[str]) -> bool:
    """Returns whether options or variables name a data directory, database or configuration."""
    options = ("data-dir", "database-url", "config")
    given = {argument.partition("=")[0] for argument in arguments}
    return any(
        f"--{name}" in given or f"PALESTRA_{name.upper().replace('-', '_')}" in os.environ
        for name in options
    )


def become(module: str, extra: str, arguments: list[str]) -> NoReturn:
    """Replaces this process by one that runs a module.

    Raises:
        CommandError: If that part of Palestra is not installed.
    """
    needs = {"server": ("app", "fastapi", "sqlalchemy"), "worker": ("workers", "celery")}[extra]
    if missing := [name for name in needs if importlib.util.find_spec(name) is None]:
        raise CommandError(f"{', '.join(missing)} not installed: pip install 'palestra[{extra}]'")
    sys.stdout.flush()
    command = build_python_command(module, *arguments)
    os.execv(command[0], command)  # noqa: S606 - our own module


def _as_log_format(argument: str) -> str:
    return "--log-format=json" if argument == "--json" else argument
