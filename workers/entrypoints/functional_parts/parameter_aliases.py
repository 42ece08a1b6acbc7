"""Other names of parameters, from documents that call them so."""

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


def other_name(**names: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Returns a decorator by which a function takes its parameters by other names, too.

    Args:
        names: Parameter by its other name.

    Raises:
        ValueError: From the decorated function, if a parameter comes by both names.
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
