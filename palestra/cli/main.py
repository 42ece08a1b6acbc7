"""The `palestra` command: its sub-commands, and one sentence and exit code for every error."""

import contextlib
import os
import sys
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException
from typer.main import get_group

import palestra
from palestra.cli import (
    account_commands,
    audit_commands,
    catalogue,
    change_command,
    comparison_command,
    control,
    demo,
    exec_commands,
    files,
    health_command,
    join,
    login,
    move_command,
    play,
    pool_commands,
    presets,
    project_commands,
    queries,
    queue_commands,
    record_commands,
    run_jobs,
    series_command,
    show,
    statistics_command,
    submit,
    threshold_commands,
    token_commands,
    up,
    usage_commands,
    user_commands,
    view_commands,
    waiting_queue,
    watch_runs,
    worker_control,
)
from palestra.cli.embedded.signals import Stopped
from palestra.cli.output import BROKEN_PIPE, FAILURE, INTERRUPTED, CommandError, warn
from palestra.cli.refusals import explain_refusal
from palestra.cli.server_address import Project, chosen_project
from palestra.errors import ApiError, PalestraError


class _Commands(TyperGroup):
    """The group of all commands, which distinguishes a broken pipe and Ctrl-C from failures."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _silence_output()
            raise typer.Exit(BROKEN_PIPE) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        return result


app = typer.Typer(
    cls=_Commands,
    name="palestra",
    help="Experiment server for reinforcement learning: definitions, GPU queue, live curves.",
    epilog=(
        "Exit codes: 0 done; 1 failed; 2 wrong usage; 3 cancelled; 130 after Ctrl-C; 141 where "
        "nobody reads the output."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for part in (
    up,
    demo,
    exec_commands,
    submit,
    queries,
    queue_commands,
    usage_commands,
    series_command,
    statistics_command,
    comparison_command,
    health_command,
    catalogue,
    change_command,
    show,
    waiting_queue,
    watch_runs,
    control,
    move_command,
    run_jobs,
    worker_control,
    files,
    record_commands,
    view_commands,
    play,
    presets,
    pool_commands,
    project_commands,
    threshold_commands,
    join,
    login,
    account_commands,
    user_commands,
    token_commands,
    audit_commands,
):
    part.register(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"palestra {palestra.__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and end.", is_eager=True, callback=_print_version
        ),
    ] = False,
    project: Project = None,
) -> None:
    chosen_project.set(project)


@cache
def _make_command() -> TyperGroup:
    """Returns the command with all its subcommands, which take a third of a second to build."""
    return get_group(app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Returns its exit code: 2 for wrong usage, 130 after Ctrl-C, 141 after a broken pipe.
    """
    try:
        result = _make_command().main(
            args=list(arguments) if arguments is not None else None,
            prog_name="palestra",
            standalone_mode=False,
        )
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except Stopped as stopped:
        return stopped.exit_code
    except Exception as error:
        if sys.flags.dev_mode and not isinstance(error, _EXPECTED):
            raise
        return _fail(*_explain(error, sys.argv[1:] if arguments is None else arguments))
    return result if isinstance(result, int) else 0


_EXPECTED: Final = (CommandError, PalestraError, TyperException)


def _explain(error: Exception, arguments: Sequence[str]) -> tuple[str, int]:
    if isinstance(error, TyperException):
        return error.format_message(), error.exit_code
    if isinstance(error, ApiError):
        return explain_refusal(error, arguments), FAILURE
    if isinstance(error, _EXPECTED):
        return str(error), getattr(error, "exit_code", FAILURE)
    return (
        f"this is a fault of Palestra: {type(error).__name__}: {error} (python -X dev shows where)",
        FAILURE,
    )


def _fail(sentence: str, exit_code: int) -> int:
    try:
        warn(f"palestra: {sentence}")
    except BrokenPipeError:
        _silence_output()
    return exit_code


def _silence_output() -> None:
    """Redirects the output streams to the null device.

    Otherwise the interpreter would report an error for text that is still buffered.
    """
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(null, stream.fileno())
    os.close(null)
