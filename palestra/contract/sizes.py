"""Sizes of files and counts in words, for messages and tables."""

from typing import Final

_UNITS: Final = ("KiB", "MiB", "GiB", "TiB")


def format_size(size: int) -> str:
    """Returns a number of bytes in its own unit: `252 B`, `338.3 KiB`, `4.6 MiB`."""
    if size < 2**10:
        return f"{size} B"
    value = float(size)
    for unit in _UNITS:
        value /= 2**10
        if value < 1_023.95 or unit == _UNITS[-1]:
            break
    return f"{value:,.1f} {unit}"


def format_count(number: int, noun: str) -> str:
    """Returns a number with a regular noun: `0 jobs`, `1 job`, `1,200 jobs`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
