"""Finds and replaces secrets in text that is about to be recorded.

Such text is a diff, a command line, a remote address or an environment.

Uses its own patterns and those of `palestra.detectors`, wherever the text comes from.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from palestra.detectors import find_secrets

REDACTED: Final = "[redacted]"

_MIN_ENTROPY: Final = 2.5
"""Bits per character above which the value of a secret-sounding name counts as a secret."""

_WHOLE: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: "
    r"BLOCK)?-----|(?=\ndiff --git )|\Z)"
    r"|PuTTY-User-Key-File-\d+:.*?(?:Private-MAC:[^\n]*|(?=\ndiff --git "
    r")|\Z)|\bAGE-SECRET-KEY-1[0-9A-Z]{20,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}"
    r"|\bgl[a-z]{2,7}-[A-Za-z0-9_-]{20,}"
    r"|\bx(?:ox[a-z]|app)-[A-Za-z0-9-]{10,}|\b(?:[sr]k|whsec)_(?:live_|test_)?[A-Za-z0-9]{16,}"
    r"|\bsk-[A-Za-z0-9_-]{20,}"
    r"|\bhf_[A-Za-z0-9]{20,}|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[A-Za-z0-9_-]{40,}"
    r"|\bdapi[0-9a-f]{32}\b|\bdo[opr]_v1_[0-9a-f]{40,}"
    r"|\bAIza[A-Za-z0-9_-]{35}|\bGOCSPX-[A-Za-z0-9_-]{20,}|\bya29\.[A-Za-z0-9_-]{20,}"
    r"|\bpl[aerslw]_[A-Za-z0-9]{20,}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+",
    re.DOTALL,
)
_USERINFO: Final = re.compile(r"(?<=://)(?:[^\s/@:'\"]*:[^\s/'\"]+|[A-Za-z0-9_-]{20,})(?=@)")
_HEADER: Final = re.compile(
    r"(?i)\b(?P<name>(?:bearer|basic)\s+)(?P<quote>)(?P<value>(?=\S*\d)[A-Za-z0-9+/_.~-]{16,}=*)"
)
_NETRC: Final = re.compile(
    r"(?<=\blogin\s)\s*\S+\s+password\s+\S+|(?:(?<=^\+password\s)|(?<=^password\s))(?![=:])\S+",
    re.MULTILINE,
)
_NAMED: Final = re.compile(
    r"""(?ix)
    (?P<name>[\w.-]*(?:key|token|secret|passw(?:or)?d|pwd|credential)[\w.-]*["']?\s*(?:=>|:=|[:=])\s*)
    (?P<quote>["']?)(?P<value>[^\s"',;}\])]{8,})"""
)
_FILE_OF_A_DIFF: Final = re.compile(r"^(?:\+\+\+ b/|diff --git a/.* b/)(?P<file>.+)$")
_SECRET_FLAG: Final = re.compile(
    r"(?i)^--?[\w-]*(?:key|token|secret|passw(?:or)?d|pwd|credential)[\w-]*$"
)
_SECRET_ASSIGNMENT: Final = re.compile(
    r"(?i)^[+\w.-]*(?:api_?key|access_?key|secret|passw(?:or)?d|pwd|credential)[\w.-]*$"
)
_FILE_FLAG: Final = re.compile(r"(?i)(?:file|path|dir)$")


def redact(text: str) -> tuple[str, int]:
    """Returns `text` with every secret that is recognised replaced, and how many were.

    In a diff, the names of the files are considered too.
    """
    count = 0

    def whole(_: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return REDACTED

    def named(match: re.Match[str]) -> str:
        nonlocal count
        value = match["value"]
        if (
            value.startswith((REDACTED, "${", "{{"))
            or _entropy(value) < _MIN_ENTROPY
            or not _is_mixed(value)
        ):
            return match[0]
        count += 1
        return f"{match['name']}{match['quote']}{REDACTED}"

    for pattern in (_WHOLE, _USERINFO, _NETRC):
        text = pattern.sub(whole, text)
    for pattern in (_HEADER, _NAMED):
        text = pattern.sub(named, text)
    lines = list(_redact_lines(text))
    return "".join(line for line, _ in lines), count + sum(found for _, found in lines)


def _redact_lines(text: str) -> Iterator[tuple[str, int]]:
    """Yields each line with its secrets replaced, and the number of secrets in it."""
    file = ""
    for line in text.splitlines(keepends=True):
        header = _FILE_OF_A_DIFF.match(line)
        file = header["file"] if header else file
        yield (line, 0) if header else _without_spans(line, file)


def _without_spans(line: str, file: str) -> tuple[str, int]:
    body = line.rstrip("\r\n")
    count, end, pieces = 0, 0, []
    for begin, until in sorted(find_secrets(body, file)):
        if begin >= end and REDACTED not in body[begin:until]:
            pieces += [body[end:begin], REDACTED]
            count += 1
            end = until
    return "".join([*pieces, line[end:]]), count


def redact_arguments(arguments: Sequence[str]) -> tuple[list[str], int]:
    """Returns command-line arguments with secrets replaced, and the number of secrets.

    Values that follow a flag such as `--token` count as secrets.
    """
    clean: list[str] = []
    count = 0
    follows = False
    for argument in arguments:
        flag, separator, value = argument.partition("=")
        secret = bool(
            _SECRET_FLAG.match(flag) or (separator and _SECRET_ASSIGNMENT.match(flag))
        ) and not _FILE_FLAG.search(flag)
        if follows and not argument.startswith("-"):
            found, number = REDACTED, 1
        elif secret and separator and value:
            found, number = f"{flag}={REDACTED}", 1
        else:
            found, number = redact(argument)
        follows = secret and not separator
        clean.append(found)
        count += number
    return clean, count


def _entropy(text: str) -> float:
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


def _is_mixed(text: str) -> bool:
    """Returns whether a value mixes kinds of characters, unlike words and dotted names of code."""
    return any(character.isdigit() for character in text) or not re.fullmatch(
        r"[A-Za-z_.()\[\]]+", text
    )
