"""Finds pydantic's wording of validation errors, which must not appear in messages to users."""

import re
from typing import Final

_PHRASES: Final = re.compile(
    r"Input |should be|should have|should match|should not|Value error|"
    r"Assertion failed|Extra inputs|Field required"
    r"|valid (string|integer|number|boolean|dictionary|list|tuple|datetime)"
    r"|errors\.pydantic\.dev|validation error"
    r"|\[type=|input_value|Unable to (parse|extract)|expected tags|unable to interpret"
)


def find_pydantic_phrases(text: str) -> list[str]:
    """Returns the phrases of a text that are pydantic's wording."""
    return [match.group() for match in _PHRASES.finditer(text)]
