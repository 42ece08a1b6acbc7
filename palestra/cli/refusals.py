"""Sentences about refusals of the server, in the words of the command line."""

from collections.abc import Sequence
from typing import Final

from palestra.cli.output import remove_control_characters
from palestra.errors import ApiError

_OPTIONS: Final = {
    "query/filter": "--filter",
    "/filter": "--filter",
    "/selection/filter": "--filter",
    "/state/filter": "--filter",
    "query/sort": "--sort",
    "/state/sort": "--sort",
    "query/columns": "--columns",
    "query/column": "--column",
    "query/by": "--group",
    "query/metric": "--metric",
    "query/series": "--series",
    "query/start": "--start",
    "query/end": "--end",
    "/names": "--name",
    "/group_by": "--by",
    "/normalisation/table": "--normalise",
}
"""Options of the members and parameters of requests; those of a list are named without index."""

_REMEDIES: Final = {
    "name some in `runs`, `experiments`, `filter` or `groups`": (
        "give IDs of runs or experiments, or --filter"
    ),
    "or set `missing` to `leave_out`": "or leave these runs out with --leave-out",
    "give one in `references`, or use `min_max`": (
        "give one with --reference, or use --normalise min-max"
    ),
    "`normalisation`": "--normalise or --reference",
    "by fields in `group_by`": "by fields with --by",
}
"""What the server advises for its requests, and what does it here."""


def explain_refusal(error: ApiError, arguments: Sequence[str]) -> str:
    """Returns why the server refused a request, with the options that it is about.

    Args:
        error: The refusal.
        arguments: Arguments of the command; a fault in a filter is marked in it.
    """
    sentence = str(error)
    for advised, done in _REMEDIES.items():
        sentence = sentence.replace(advised, done)
    faults = error.problem.errors
    option = _OPTIONS.get(_strip_index(faults[0].pointer)) if len(faults) == 1 else None
    if option is None or not sentence.startswith(f"{faults[0].pointer}: "):
        return sentence
    sentence = sentence.removeprefix(f"{faults[0].pointer}: ")
    if sentence.endswith("?."):
        sentence = sentence.removesuffix(".")
    if error.code in {"unknown_filter_field", "unknown_column", "unknown_field"}:
        sentence += " `palestra filter-keys` lists the names that there are."
    shown = f"{option}: {sentence}"
    written = _find_value(arguments, option)
    position = error.problem.position
    if written is None or position is None:
        return shown
    return f"{shown}\n{mark_position(written, position)}"


def mark_position(text: str, position: int) -> str:
    """Returns two lines: the text around a character, and a mark below it."""
    start = max(0, position - 40)
    shown = remove_control_characters(text[start : position + 20])
    return f"  {shown}\n  {' ' * (position - start)}^"


def _strip_index(pointer: str) -> str:
    parent, _, last = pointer.rpartition("/")
    return parent if last.isdecimal() else pointer


def _find_value(arguments: Sequence[str], option: str) -> str | None:
    for index, argument in enumerate(arguments):
        if argument == option and index + 1 < len(arguments):
            return arguments[index + 1]
        if argument.startswith(f"{option}="):
            return argument.removeprefix(f"{option}=")
    return None
