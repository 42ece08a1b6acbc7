"""Reads JSON from untrusted sources.

It is strict about encoding, depth, duplicate keys, non-finite numbers and invalid text.

The server and the command line share it, so that both refuse the same documents in the same words.
Time and memory are linear in the text, whatever it holds; the number of values is checked before
any value is created.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Final

from palestra.contract.problems import build_pointer

MAX_DEPTH: Final = 32
"""Levels of arrays and objects in a document."""

MAX_VALUES: Final = 200_000
"""Values in a document, those inside others included."""

MAX_CONTAINERS: Final = 40_000
"""Arrays and objects in a document: each costs as much as ten numbers."""

MAX_KEYS: Final = 2_000
"""Keys of one object. Every unknown one is a fault of its own, with a place and a sentence."""

_HUGE_EXPONENT: Final = re.compile(rb"[eE]\+?0*[1-9][0-9]{2}")
_DIGITS_TO_ZERO: Final = bytes(0x30 if 0x30 <= byte <= 0x39 else 0x20 for byte in range(256))
_HUGE_DIGITS: Final = b"0" * 309
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NUL: Final = re.compile("\0")
_LONG_NUMBER: Final = 1_000
"""Digits beyond which a number is not parsed, since the time grows with their square."""
_SLICE: Final = 65_536
"""Bytes that are searched in one call, so that other threads can run between two calls."""
_CONTAINERS: Final = (list, dict)

_NESTED: Final = re.compile(rb"(?:[\[{][^\[\]{}]*+){%d}" % (MAX_DEPTH + 1))
_SAMPLE: Final = 4_096
"""Bytes in which a document with too many brackets shows whether they are nested."""

_Path = tuple[str | int, ...]


class JsonError(ValueError):
    """The bytes are not acceptable JSON.

    `is_syntax_error` is true if the text is not JSON, false if it holds a value that is refused.
    """

    def __init__(
        self, code: str, message: str, *, path: _Path = (), is_syntax_error: bool = True
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.pointer = build_pointer(path)
        self.is_syntax_error = is_syntax_error


def check_json(raw: bytes, max_depth: int = MAX_DEPTH, *, nul: bool = False) -> Any:
    """Returns the value of a JSON text that passes the checks of this module.

    Args:
        raw: The text.
        max_depth: Levels of arrays and objects that it may have.
        nul: Whether strings may hold the NUL character, which no text column of PostgreSQL can
            keep.

    Raises:
        JsonError: With the byte where reading failed, or the pointer to the refused value.
    """
    text = _decode(raw)
    _refuse_too_many(raw, max_depth)
    value = _load(raw, text, max_depth)
    floats = _may_be_non_finite(raw)
    surrogates = _SURROGATE.search(raw) is not None
    zeros = not nul and b"\\u0000" in raw
    for path, container in _iterate_containers(value, max_depth):
        if floats:
            _refuse_non_finite(path, container)
        if surrogates:
            _refuse(
                path,
                container,
                _LONE_SURROGATE,
                "not_unicode",
                "must not contain half of a surrogate pair",
            )
        if zeros:
            _refuse(path, container, _NUL, "nul_character", "must not contain the NUL character")
    return value


def _refuse_too_many(raw: bytes, max_depth: int) -> None:
    """Refuses JSON with too many values, counted by commas and brackets.

    The first count includes characters inside strings; only if it is too high is the text counted
    again without strings.
    """
    if not _are_too_many(*_estimate_counts(raw)):
        return
    containers = values = 0
    for part in _split_out_strings(raw):
        more_containers, more_values = _estimate_counts(part)
        containers, values = containers + more_containers, values + more_values
        if _are_too_many(containers, values):
            if _NESTED.search(part[:_SAMPLE]) and max_depth <= MAX_DEPTH:
                raise _too_deep(max_depth)
            limits = f"{MAX_VALUES} values, or more than {MAX_CONTAINERS} arrays and objects"
            raise JsonError("too_many_values", f"holds more than {limits}", is_syntax_error=False)


def _split_out_strings(raw: bytes) -> Iterator[bytes]:
    """Yields the text outside of strings, in pieces."""
    plain = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    inside = 0
    for start in range(0, len(plain), _SLICE):
        parts = plain[start : start + _SLICE].split(b'"')
        yield b"".join(parts[inside::2])
        inside ^= (len(parts) - 1) & 1


def _estimate_counts(raw: bytes) -> tuple[int, int]:
    """Returns the number of arrays and objects in `raw`, and approximately that of values."""
    containers = raw.count(b"[") + raw.count(b"{")
    return containers, containers + raw.count(b",")


def _are_too_many(containers: int, values: int) -> bool:
    return containers > MAX_CONTAINERS or values > MAX_VALUES


def _may_be_non_finite(raw: bytes) -> bool:
    """Returns whether the bytes can hold a non-finite number.

    A search of the bytes is cheaper than a walk over every number of a large body.
    """
    if b"NaN" in raw or b"Infinity" in raw or _HUGE_EXPONENT.search(raw):
        return True
    return _HUGE_DIGITS in raw.translate(_DIGITS_TO_ZERO)


def _decode(raw: bytes) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonError("not_utf8", f"is not UTF-8: byte {error.start} cannot be decoded") from None
    if text.startswith("\ufeff"):
        raise JsonError(
            "byte_order_mark", "begins with a byte order mark: save it as UTF-8 without one"
        )
    return text


def _load(raw: bytes, text: str, max_depth: int) -> Any:
    long = _HUGE_DIGITS in raw.translate(_DIGITS_TO_ZERO)
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_int=_bounded if long else None)
    except RecursionError:
        raise _too_deep(max_depth) from None
    except json.JSONDecodeError as error:
        at = len(text[: error.pos].encode())
        raise JsonError("invalid_json", f"is not valid JSON at byte {at}") from None


def _bounded(digits: str) -> int:
    if len(digits) > _LONG_NUMBER:
        raise JsonError(
            "out_of_range", "holds a number with too many digits", is_syntax_error=False
        )
    return int(digits)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise JsonError(
            "duplicate_key",
            f"has the duplicate key {build_pointer((_first_duplicate(pairs),))[1:]}",
        )
    if len(value) > MAX_KEYS:
        message = f"has an object with more than {MAX_KEYS} keys"
        raise JsonError("too_many_values", message, is_syntax_error=False)
    return value


def _first_duplicate(pairs: list[tuple[str, Any]]) -> str:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            break
        seen.add(key)
    return key


def _iterate_containers(
    value: Any, max_depth: int
) -> Iterator[tuple[_Path, list[Any] | dict[str, Any]]]:
    """Yields the value itself in a list, then every array and object in it, with its path."""
    stack: list[tuple[_Path, Any, int]] = (
        [((), value, 1)] if isinstance(value, (list, dict)) else []
    )
    if not stack:
        yield (), [value]
    while stack:
        path, container, depth = stack.pop()
        if depth > max_depth:
            raise _too_deep(max_depth)
        yield path, container
        items = container.items() if isinstance(container, dict) else enumerate(container)
        stack += [
            ((*path, key), child, depth + 1)
            for key, child in items
            if child.__class__ in _CONTAINERS
        ]


def _items(container: list[Any] | dict[str, Any]) -> Iterator[tuple[str | int, Any]]:
    yield from enumerate(container) if isinstance(container, list) else container.items()


def _refuse_non_finite(path: _Path, container: list[Any] | dict[str, Any]) -> None:
    for key, value in _items(container):
        if isinstance(value, float) and not math.isfinite(value):
            raise JsonError(
                "not_finite",
                'must be finite; where a number may not be, send "NaN" or "Infinity" as a string',
                path=(*path, key),
                is_syntax_error=False,
            )


def _refuse(
    path: _Path,
    container: list[Any] | dict[str, Any],
    bad: re.Pattern[str],
    code: str,
    message: str,
) -> None:
    for key, value in _items(container):
        if any(isinstance(text, str) and bad.search(text) for text in (key, value)):
            raise JsonError(code, message, path=(*path, key), is_syntax_error=False)


def _too_deep(max_depth: int) -> JsonError:
    return JsonError("too_deep", f"is nested deeper than {max_depth}")
