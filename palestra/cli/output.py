"""Output of the commands: tables for people, JSON for programs, one sentence per error."""

import errno
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, NoReturn

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from palestra.contract.pools import WorkerView
from palestra.contract.resources import BacklogView
from palestra.contract.work_order import Failure

FAILURE: Final = 1
USAGE: Final = 2
CANCELLED: Final = 3
"""Exit code: the run or job that a command waited for was cancelled."""
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Raises `BrokenPipeError`, which the command handles."""
        raise BrokenPipeError(errno.EPIPE, "nobody reads")


out: Final = _Console(highlight=False, soft_wrap=True)
err: Final = _Console(stderr=True, highlight=False, soft_wrap=True)

STATE_STYLES: Final = {
    "succeeded": "green",
    "running": "cyan",
    "online": "green",
    "failed": "red",
    "lost": "red",
    "unreachable": "red",
    "cancelled": "dim",
    "paused": "yellow",
    "queued": "default",
}


class CommandError(Exception):
    """Ends a command with one sentence and an exit code."""

    def __init__(self, sentence: str, exit_code: int = FAILURE) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


def fail_usage(sentence: str) -> NoReturn:
    """Ends the command with a usage error: exit code 2."""
    raise CommandError(sentence, USAGE)


def emit_json(value: BaseModel | Sequence[BaseModel] | dict[str, Any] | list[Any]) -> None:
    """Prints a value as JSON, for programs."""
    if isinstance(value, BaseModel):
        text = value.model_dump_json(indent=2)
    else:
        text = json.dumps(value, indent=2, default=lambda item: item.model_dump(mode="json"))
    sys.stdout.write(text + "\n")


def emit_json_line(value: BaseModel | dict[str, Any]) -> None:
    """Prints a value as one line of JSON, at once."""
    text = value.model_dump_json() if isinstance(value, BaseModel) else json.dumps(value)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def build_table(
    headings: Sequence[str], rows: Iterable[Sequence[Any]], *, numbers: Iterable[str] = ()
) -> Table:
    """Returns a table; text from the server is not interpreted as markup."""
    right = set(numbers)
    made = Table(box=None, header_style="bold", pad_edge=False)
    for heading in headings:
        made.add_column(heading, justify="right" if heading in right else "left", no_wrap=True)
    for row in rows:
        made.add_row(
            *(
                cell if isinstance(cell, Text) else Text("" if cell is None else str(cell))
                for cell in row
            )
        )
    return made


def show(shown: Table) -> None:
    """Prints a table at its own width.

    Identifiers are not cut, so that they can be copied, and read by programs.
    """
    width = Measurement.get(out, out.options.update(max_width=10_000), shown).maximum
    _Console(highlight=False, width=max(width, out.width)).print(shown)


def show_ids(rows: Sequence[Any]) -> None:
    """Prints the ID of each row, one per line."""
    for row in rows:
        out.out(row.id, highlight=False)


def format_state(value: str) -> Text:
    """Returns a state in its colour."""
    return Text(str(value), STATE_STYLES.get(str(value), "default"))


def format_number(value: float | None, digits: int = 1) -> str:
    """Returns a number for a table; a dash for none."""
    return "-" if value is None else f"{value:,.{digits}f}"


def format_spread(stdev: float | None, count: int) -> str:
    """Returns a sample standard deviation for a table; a dash where one value has none."""
    return format_number(stdev if count > 1 else None)


def format_mean_and_spread(mean: float, stdev: float | None, count: int) -> str:
    """Returns a mean with its sample standard deviation; alone where one value has none."""
    return (
        f"{format_number(mean)} ± {format_number(stdev)}"
        if count > 1 and stdev is not None
        else format_number(mean)
    )


def say(sentence: str) -> None:
    """Prints a sentence for people."""
    out.print(Text(sentence))


def warn(sentence: str) -> None:
    """Prints a sentence to the error stream."""
    err.print(Text(sentence))


def ask_secret(prompt: str) -> str:
    """Returns a secret: typed without echo at a terminal, else the first line of standard input."""
    if sys.stdin.isatty():
        return str(typer.prompt(prompt, hide_input=True))
    return sys.stdin.readline().strip()


def remove_control_characters(text: str) -> str:
    """Returns text of the server without control characters, which could change the terminal."""
    return "".join(
        character if character.isprintable() or character == "\t" else "\ufffd"
        for character in text
    )


def describe_cause(cause: str | None, failure: Failure | None) -> str:
    """Returns the cause of an end in one line, with the message of a failure."""
    message = (
        remove_control_characters(failure.message.strip().partition("\n")[0])
        if failure is not None
        else ""
    )
    return ": ".join(part for part in (str(cause) if cause is not None else "", message) if part)


def describe_backlog(backlog: BacklogView | None) -> str:
    """Returns in one line which results are not uploaded yet and why.

    Empty if all are uploaded.
    """
    return "" if backlog is None else remove_control_characters(backlog.message)


def describe_clock(worker: WorkerView) -> str:
    """Returns by how many seconds a worker's clock is wrong; an empty text if it is not."""
    if not worker.has_wrong_clock or worker.clock_skew_seconds is None:
        return ""
    side = "ahead of" if worker.clock_skew_seconds > 0 else "behind"
    return f"clock {abs(worker.clock_skew_seconds):.0f} s {side} the server's"


def describe_worker(worker: WorkerView) -> str:
    """Returns why a worker drains by itself, and how wrong its clock is; empty if neither holds."""
    parts = (remove_control_characters(worker.drain_reason or ""), describe_clock(worker))
    return "; ".join(part for part in parts if part)


def shorten(text: str, most: int = 90) -> str:
    """Returns text shortened for a table's last column."""
    return text if len(text) <= most else text[: most - 1] + "…"
