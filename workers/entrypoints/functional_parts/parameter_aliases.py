"""Aliases of keyword parameters."""

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


def alias_parameters(**names: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Returns a decorator that adds aliases of keyword parameters to a function.

    The decorated function raises ValueError if it is called with a parameter and its alias.

    Args:
        names: Parameter name by alias.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def renamed(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            used = {other: name for other, name in names.items() if other in kwargs}
            if not used:
                return function(*args, **kwargs)
            values = {used[other]: kwargs.pop(other) for other in used}
            given = signature.bind_partial(*args, **kwargs).arguments
            for other, name in used.items():
                if given.get(name) is not None:
                    raise ValueError(f"{other} is another name of {name}: give one of them")
            return function(**{**given, **values})  # type: ignore[call-arg]

        return renamed

    return decorate
