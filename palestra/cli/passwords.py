"""Passwords that commands ask for: never a part of the command line."""

import sys
from typing import Annotated

import typer

from palestra.cli.output import fail_usage

PasswordStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password as a line of standard input.")
]


def require_input(*, from_stdin: bool) -> None:
    """Ends the command as wrong usage where no terminal can be asked for a password."""
    if not (from_stdin or sys.stdin.isatty()):
        fail_usage("there is no terminal to ask for the password: use --password-stdin")


def ask_password(prompt: str, *, twice: bool, from_stdin: bool) -> str:
    """Returns a password, without the changes to white space that other secrets get.

    Args:
        prompt: Name of the password in the prompt.
        twice: Whether it has to be typed twice, so that typing errors are found.
        from_stdin: Whether it is the next line of standard input; else it is typed at the terminal,
            without echo.
    """
    if not from_stdin:
        return str(typer.prompt(prompt, hide_input=True, confirmation_prompt=twice))
    typed = sys.stdin.readline().rstrip("\r\n")
    return typed or fail_usage(f"{prompt.lower()} is missing: write it as a line of standard input")
