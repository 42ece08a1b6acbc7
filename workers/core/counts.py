"""Checks of whole numbers: integers of Python and NumPy are accepted, booleans and floats not."""

from numbers import Integral
from typing import Any


def is_count(value: object, least: int) -> bool:
    """Returns whether a value is a whole number of at least `least`."""
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= least


def check_count(value: Any, name: str, least: int) -> int:
    """Returns a whole number as an `int`.

    Raises:
        ValueError: If it is not a whole number of at least `least`; the message contains `name`.
    """
    if not is_count(value, least):
        raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
    return int(value)
