"""Times of options that are written relative to now, like `2h` or `7d`."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from palestra.cli.output import fail_usage

_OUTSIDE: Final = {-1: "before the year 1", 1: "after the year 9999"}


def resolve_time(
    option: str, text: str, units: Mapping[str, str], direction: Literal[-1, 1]
) -> str:
    """Returns a relative time as RFC 3339; another text as it is.

    Args:
        option: Name of the option, for errors.
        text: For example `7d`.
        units: Letters of the units that the option takes, with parameters of `timedelta`.
        direction: Whether the time lies after now (1) or before it (-1).
    """
    if text[-1:] not in units or not text[:-1].isdecimal():
        return text
    try:
        distance = timedelta(**{units[text[-1]]: int(text[:-1])})
        return (datetime.now(UTC) + direction * distance).isoformat()
    except OverflowError:
        fail_usage(f"{option} {text}: lies {_OUTSIDE[direction]}")
