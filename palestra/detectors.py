"""Applies the patterns of detect-secrets, a collection of the shapes of secrets, to a line.

Importing the collection takes longer than importing Palestra, so it happens at the first search.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

_UNUSED: Final = frozenset(
    {
        "Base64 High Entropy String",
        "Hex High Entropy String",
        "Public IP (ipv4)",
        "Private Key",
        "Secret Keyword",
    }
)
"""Detectors that are not used.

Some match any random text, which commits and digests are too; others match addresses, or what
`palestra.redaction` and `_compile_named_patterns` find.
"""

_CONFIGURATION: Final = re.compile(
    r"(?i)\.(ya?ml|ini|cfg|conf|config|toml|properties|env|json|sh)$|(^|/)dockerfile[^/]*$"
)
"""Files whose values need no quotation marks to count as secrets."""

_DOTENV_LINE: Final = re.compile(r"[+\- ]?\s*(?:export\s+|ENV\s+|set\s+)?[A-Z][A-Z0-9_]*=\S")
"""An assignment in the syntax of shells and `.env` files."""

_NO_VALUES: Final = frozenset({"null", "none", "true", "false", "~"})

_MAX_LINE_LENGTH: Final = 20_000
"""Longest line, in characters, that is searched for named values.

The patterns take quadratic time in the worst case.
"""


def find_secrets(line: str, file: str = "") -> Iterator[tuple[int, int]]:
    """Yields the start and the end of each secret in a line.

    Args:
        line: One line of text.
        file: Name of the file that it is from; decides whether values without quotation marks
            count.
    """
    for pattern in _compile_whole_patterns():
        for match in pattern.finditer(line):
            yield match.span()
    bare = bool(_CONFIGURATION.search(file) or _DOTENV_LINE.match(line))
    for pattern, group in _compile_named_patterns(bare=bare):
        for match in pattern.finditer(line[:_MAX_LINE_LENGTH]):
            if _is_value(match[group], line):
                yield match.span(group)


def _is_value(value: str, line: str) -> bool:
    """Returns whether a value is a literal, not a placeholder, call or look-up."""
    from detect_secrets.filters import heuristic  # noqa: PLC0415 - see the module

    return (
        any(character.isalnum() for character in value)
        and value.strip(" ,;").lower() not in _NO_VALUES
        and not heuristic.is_templated_secret(value)
        and not heuristic.is_prefixed_with_dollar_sign(value)
        and not heuristic.is_indirect_reference(line)
    )


@cache
def _compile_whole_patterns() -> tuple[re.Pattern[str], ...]:
    """Returns the patterns whose entire match is a secret."""
    from detect_secrets.core.plugins import util  # noqa: PLC0415 - see the module
    from detect_secrets.plugins.base import BasePlugin, RegexBasedDetector  # noqa: PLC0415

    kinds: Mapping[str, type[BasePlugin]] = util.get_mapping_from_secret_type_to_class()
    detectors = [kind() for name, kind in sorted(kinds.items()) if name not in _UNUSED]
    return tuple(
        pattern
        for one in detectors
        if isinstance(one, RegexBasedDetector)
        for pattern in one.denylist
    )


@cache
def _compile_named_patterns(*, bare: bool) -> tuple[tuple[re.Pattern[str], int], ...]:
    """Returns the patterns of a secret-sounding name with a value, and the group of the value."""
    from detect_secrets.plugins import keyword  # noqa: PLC0415 - see the module

    found = dict(keyword.QUOTES_REQUIRED_DENYLIST_REGEX_TO_GROUP)
    return tuple((found | keyword.CONFIG_DENYLIST_REGEX_TO_GROUP if bare else found).items())
