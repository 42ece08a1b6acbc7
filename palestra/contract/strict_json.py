"""Reads JSON that strangers wrote: exact about encoding, depth, duplicate keys, non-finite numbers and broken text.

The server and the command line share it, so that both refuse the same documents in the same words.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from palestra.contract.problems import pointer

MAX_DEPTH: Final = 32
"""Levels of arrays and objects in a document."""

_HUGE_EXPONENT: Final = re.compile(rb"[eE]\+?0*[1-9][0-9]{2}")
_DIGITS_TO_ZERO: Final = bytes(0x30 if 0x30 <= byte <= 0x39 else 0x20 for byte in range(256))
_HUGE_DIGITS: Final = b"0" * 309
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")

_CONTAINERS: Final = (list, dict)

_Path = tuple[str | int, ...]


class JsonError(ValueError):
    """The bytes are not acceptable JSON.

    `syntax` tells a text that cannot be read from one that can be read but holds a value that is refused.
    """

    def __init__(self, code: str, message: str, *, path: _Path = (), syntax: bool = True) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.pointer = pointer(path)
        self.syntax = syntax


def check_json(raw: bytes, max_depth: int = MAX_DEPTH, *, nul: bool = False) -> Any:
    """Returns the value of a JSON text, having refused all that a strict reader should.

    Args:
        raw: The text.
        max_depth: Levels of arrays and objects it may have.
        nul: Whether strings may hold the NUL character, which no text column of PostgreSQL can keep.

    Raises:
        JsonError: With the byte where reading failed, or the pointer to the refused value.
    """
    value = _load(_decode(raw), max_depth)
    floats = _may_be_non_finite(raw)
    surrogates = _SURROGATE.search(raw) is not None
    zeros = not nul and b"\\u0000" in raw
    for path, container in _containers(value, max_depth):
        if floats:
            _refuse_non_finite(path, container)
        if surrogates:
            _refuse(path, container, _is_surrogate, "not_unicode", "must not contain half of a surrogate pair")
        if zeros:
            _refuse(path, container, _is_nul, "nul_character", "must not contain the NUL character")
    return value


def _may_be_non_finite(raw: bytes) -> bool:
    """A cheap look at the bytes spares the walk over every number of a large body."""
    if b"NaN" in raw or b"Infinity" in raw or _HUGE_EXPONENT.search(raw):
        return True
    return _HUGE_DIGITS in raw.translate(_DIGITS_TO_ZERO)


def _decode(raw: bytes) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonError("not_utf8", f"is not UTF-8: byte {error.start} cannot be decoded") from None
    if text.startswith("\ufeff"):
        raise JsonError("byte_order_mark", "begins with a byte order mark: save it as UTF-8 without one")
    return text


def _load(text: str, max_depth: int) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except RecursionError:
        raise _too_deep(max_depth) from None
    except json.JSONDecodeError as error:
        at = len(text[: error.pos].encode())
        raise JsonError("invalid_json", f"is not valid JSON at byte {at}") from None
    except JsonError:
        raise
    except ValueError:  # the interpreter's bound on the digits of an integer
        raise JsonError("out_of_range", "holds a number with too many digits", syntax=False) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for index, key in enumerate(keys) if key in keys[:index])
        raise JsonError("duplicate_key", f"has the duplicate key {pointer((twice,))[1:]}")
    return value


def _containers(value: Any, max_depth: int) -> Iterator[tuple[_Path, list[Any] | dict[str, Any]]]:
    """Yields the value itself in a list, then every array and object in it, with its path."""
    stack: list[tuple[_Path, Any, int]] = [((), value, 1)] if isinstance(value, (list, dict)) else []
    if not stack:
        yield (), [value]
    while stack:
        path, container, depth = stack.pop()
        if depth > max_depth:
            raise _too_deep(max_depth)
        yield path, container
        items = container.items() if isinstance(container, dict) else enumerate(container)
        stack += [((*path, key), child, depth + 1) for key, child in items if child.__class__ in _CONTAINERS]


def _items(container: list[Any] | dict[str, Any]) -> Iterator[tuple[str | int, Any]]:
    yield from enumerate(container) if isinstance(container, list) else container.items()


def _refuse_non_finite(path: _Path, container: list[Any] | dict[str, Any]) -> None:
    for key, value in _items(container):
        if isinstance(value, float) and not math.isfinite(value):
            raise JsonError(
                "not_finite",
                'must be finite; where a number may not be, send "NaN" or "Infinity" as a string',
                path=(*path, key),
                syntax=False,
            )


def _refuse(path: _Path, container: list[Any] | dict[str, Any], is_bad: Callable[[str], bool], code: str, message: str) -> None:
    for key, value in _items(container):
        if any(isinstance(text, str) and any(map(is_bad, text)) for text in (key, value)):
            raise JsonError(code, message, path=(*path, key), syntax=False)


def _is_surrogate(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"


def _is_nul(character: str) -> bool:
    return character == "\0"


def _too_deep(max_depth: int) -> JsonError:
    return JsonError("too_deep", f"is nested deeper than {max_depth}")
