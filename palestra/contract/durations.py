"""Durations in words, rounded as one would say them."""

from typing import Final

_UNITS: Final = (("day", 86_400), ("hour", 3_600), ("minute", 60))


def describe_duration(seconds: float) -> str:
    """Returns a duration in the largest unit of which it has at least two, or in minutes.

    Args:
        seconds: Duration; a negative one counts as 0.
    """
    if seconds < 60:
        return "less than a minute"
    unit, size = next((one for one in _UNITS if seconds >= 2 * one[1]), _UNITS[-1])
    count = round(seconds / size)
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


def describe_wait(seconds: float) -> str:
    """Returns a duration as the rest of a sentence: "in about 5 minutes", "within a minute"."""
    return "within a minute" if seconds < 60 else f"in about {describe_duration(seconds)}"
