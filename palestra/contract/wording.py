"""The sentence for each kind of error that pydantic reports.

Pydantic's own messages never reach a user.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

_OTHERWISE: Final = "is not valid"

_SENTENCES: Final[Mapping[str, str]] = {
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number, not a fraction",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number of at most 15 digits",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "decimal_type": "must be a number",
    "decimal_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be a string",
    "string_unicode": "must be valid Unicode text",
    "string_sub_type": "must be a string",
    "string_not_ascii": "must consist of ASCII characters",
    "bytes_type": "must be a string",
    "url_type": "must be an address",
    "url_parsing": "must be an address, such as http://127.0.0.1:8080",
    "url_scheme": "must begin with {expected_schemes}",
    "date_type": "must be a date, such as 2026-01-31",
    "date_parsing": "must be a date, such as 2026-01-31",
    "time_type": "must be a time, such as 12:30:00",
    "time_parsing": "must be a time, such as 12:30:00",
    "datetime_type": "must be a date with a time, such as 2026-01-31T12:30:00Z",
    "datetime_parsing": "must be a date with a time, such as 2026-01-31T12:30:00Z",
    "datetime_from_date_parsing": "must be a date with a time, such as 2026-01-31T12:30:00Z",
    "datetime_past": "must lie in the past",
    "datetime_future": "must lie in the future",
    "timezone_aware": "must name its time zone, as the Z in 2026-01-31T12:30:00Z",
    "timezone_naive": "must name no time zone",
    "list_type": "must be an array",
    "tuple_type": "must be an array",
    "set_type": "must be an array",
    "frozen_set_type": "must be an array",
    "iterable_type": "must be an array",
    "dict_type": "must be an object",
    "mapping_type": "must be an object",
    "invalid_key": "must have strings as keys",
    "model_type": "expected an object",
    "model_attributes_type": "expected an object",
    "dataclass_type": "expected an object",
    "none_required": "must be null",
    "missing": "is required",
    "missing_argument": "is required",
    "extra_forbidden": "unknown field",
    "unexpected_keyword_argument": "unknown field",
    "finite_number": "must be finite",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "too_short": "must have at least {min_length} items",
    "too_long": "must have at most {max_length} items",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "bytes_too_short": "must have at least {min_length} bytes",
    "bytes_too_long": "must have at most {max_length} bytes",
    "string_pattern_mismatch": "must match {pattern}",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "union_tag_invalid": "must be one of {expected_tags}",
    "union_tag_not_found": "needs {discriminator} to say which kind it is",
    "value_error": "{error}",
    "json_invalid": "is not valid JSON",
    "json_type": "must be JSON text",
    "path_type": "must be a path",
}
"""A kind that is missing here has the sentence of `_OTHERWISE`.

`value_error` has the message of Palestra's own validators.
"""


def describe_fault(details: ErrorDetails | Mapping[str, Any]) -> str:
    """Returns the message for one fault, without the value that was sent."""
    template = _SENTENCES.get(details["type"], _OTHERWISE)
    return _make_singular(template.format(**details.get("ctx", {})))


def summarise_faults(error: ValidationError, whole: str, *, skip: int = 0, most: int = 8) -> str:
    """Returns the faults of a document in one line, each with its path.

    Args:
        error: What pydantic raised.
        whole: Name of the document, for faults of the document itself.
        skip: Number of leading path elements to leave out.
        most: Maximum number of faults.
    """
    return "; ".join(_placed(details, whole, skip) for details in _first_errors(error, most))


def _first_errors(error: ValidationError, most: int) -> Iterable[ErrorDetails]:
    return error.errors(include_url=False, include_input=False)[:most]


def _placed(details: ErrorDetails, whole: str, skip: int) -> str:
    return f"{'.'.join(map(str, details['loc'][skip:])) or whole}: {describe_fault(details)}"


def _make_singular(text: str) -> str:
    """Puts the noun after a bound of 1 into the singular."""
    for noun in ("items", "characters", "bytes"):
        if text.endswith(f" 1 {noun}"):
            return text.removesuffix("s")
    return text
