"""Warns of keys of lists that name nothing: they sort nothing, and their columns are empty."""

from collections.abc import Iterable, Sequence
from typing import Final

from palestra.cli.output import warn
from palestra.client import Client
from palestra.contract.filters import FilterError, Target, parse_key
from palestra.contract.list_order import split_order
from palestra.contract.problems import suggest_nearest
from palestra.contract.run_lists import RunKeysView
from palestra.errors import PalestraError

_WHAT: Final = {
    "member": "is a member of no definition",
    "series": "is a series of no run",
    "threshold": "is a threshold of no project",
}


def warn_of_unknown_keys(
    client: Client, target: Target, options: Iterable[tuple[str, Sequence[str]]]
) -> None:
    """Prints a warning for each key of a list that names nothing.

    A key may name a series that a training records later, so it is no error.

    Args:
        client: Asked for the keys that there are, if one names a member, series or threshold.
        target: The list.
        options: Names of options with their keys; a sort key may have `-` in front.
    """
    named = [
        (option, key.removeprefix("-"), *found)
        for option, keys in options
        for key in keys
        if (found := _classify(key.removeprefix("-"), target)) is not None
    ]
    if not named:
        return
    try:
        known = client.run_keys()
    except PalestraError:
        return  # The rows that were asked for are worth more than a warning.
    for option, key, kind, field in named:
        names = _list_names(known, kind)
        # Without any name there is nothing to be mistaken about yet.
        if names and known.is_complete and field not in names:
            near = suggest_nearest(field[:64], names)
            warn(f"{option}: {key} {_WHAT[kind]}{near}")


def warn_of_unknown_order(
    client: Client, target: Target, sort: str, columns: Sequence[str]
) -> None:
    """Prints a warning for each key of --sort and --columns that names nothing."""
    options = (("--sort", split_order(sort)), ("--columns", columns))
    warn_of_unknown_keys(client, target, options)


def _classify(key: str, target: Target) -> tuple[str, str] | None:
    """Returns the kind of a key and the name that must exist."""
    try:
        field, kind, _ = parse_key(key, target)
    except FilterError:
        return None
    return (kind, field) if kind in _WHAT else None


def _list_names(known: RunKeysView, kind: str) -> tuple[str, ...]:
    if kind == "member":
        return known.members
    return known.series if kind == "series" else known.thresholds
