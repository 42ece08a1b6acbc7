"""Finds secrets in text that is about to be recorded, and takes them out: diffs, command lines, remote addresses.

Owns the patterns. Must not know where the text came from.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

REDACTED: Final = "[redacted]"

_MIN_ENTROPY: Final = 2.5
"""Bits per character above which the value of a secret-sounding name is taken for a secret."""

_WHOLE: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{20,}"
    r"|\bxox[abposr]-[A-Za-z0-9-]{10,}|\bsk-[A-Za-z0-9_-]{20,}|\bhf_[A-Za-z0-9]{20,}"
    r"|\bpl[arsl]_[A-Za-z0-9]{20,}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+",
    re.DOTALL,
)
_USERINFO: Final = re.compile(r"(?<=://)[^\s/@:'\"]*:[^\s/@'\"]+(?=@)")
_NAMED: Final = re.compile(
    r"""(?ix)
    (?P<name>[\w.-]*(?:key|token|secret|passw(?:or)?d|pwd|credential)[\w.-]*["']?\s*(?:=>|:=|[:=])\s*)
    (?P<quote>["']?)(?P<value>[^\s"',;}\])]{8,})"""
)
_SECRET_FLAG: Final = re.compile(r"(?i)^--?[\w-]*(?:key|token|secret|passw(?:or)?d|pwd|credential)[\w-]*$")
_FILE_FLAG: Final = re.compile(r"(?i)(?:file|path|dir)$")


def redact(text: str) -> tuple[str, int]:
    """Returns `text` with every secret that is recognised replaced, and how many were."""
    count = 0

    def whole(_: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return REDACTED

    def named(match: re.Match[str]) -> str:
        nonlocal count
        value = match["value"]
        if value.startswith(REDACTED) or _entropy(value) < _MIN_ENTROPY or not _mixed(value):
            return match[0]
        count += 1
        return f"{match['name']}{match['quote']}{REDACTED}"

    text = _WHOLE.sub(whole, text)
    text = _USERINFO.sub(whole, text)
    return _NAMED.sub(named, text), count


def redact_arguments(arguments: Sequence[str]) -> tuple[list[str], int]:
    """Returns command-line arguments with secrets replaced, also those that follow a flag such as `--token`."""
    clean: list[str] = []
    count = 0
    follows = False
    for argument in arguments:
        flag, separator, value = argument.partition("=")
        secret = bool(_SECRET_FLAG.match(flag)) and not _FILE_FLAG.search(flag)
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


def _mixed(text: str) -> bool:
    """Words and dotted names are code, not secrets."""
    return any(character.isdigit() for character in text) or not re.fullmatch(r"[A-Za-z_.()\[\]]+", text)
