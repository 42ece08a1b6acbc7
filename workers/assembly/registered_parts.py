"""Parts that installed distributions register under entry points.

A distribution declares, say, `mine = "package.module:factory"` in the group `palestra.agents`.
Names are looked up among the declared ones and never become a path or a module. Discovery reads
metadata; code is imported only when a part is described or built.
"""

import importlib.metadata
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint
from typing import Any, Final, Literal

from pydantic import ValidationError

from palestra.contract.code import EntrypointCode
from palestra.contract.names import NAME_PATTERN
from palestra.contract.wording import summarise_faults
from workers.core.errors import PartNotFoundError
from workers.core.installed_code import code_of_distribution

Kind = Literal["agents", "model_functions", "input_functions"]
KINDS: Final[tuple[Kind, ...]] = ("agents", "model_functions", "input_functions")
GROUP_PREFIX: Final = "palestra."
"""Prefix of an entry point group; the kind follows it."""


@dataclass(frozen=True, slots=True)
class RegisteredPart:
    """A part that a distribution registers."""

    name: str
    entry_point: EntryPoint
    code: EntrypointCode

    def load(self) -> Any:
        """Imports the part.

        Raises:
            PartNotFoundError: If it cannot be imported.
        """
        try:
            return self.entry_point.load()
        except Exception as error:
            where = f"{self.code.distribution} {self.code.version}"
            raise PartNotFoundError(
                f"{self.name!r} of {where} cannot be imported: {type(error).__name__}: {error}"
            ) from error


@dataclass(frozen=True, slots=True)
class Discovery:
    """The parts of one kind that were found, and the parts that were left out."""

    parts: Mapping[str, RegisteredPart]
    left_out: Mapping[str, str]
    """Reason, as a sentence, by name of the part that was left out."""


@cache
def discover(kind: Kind) -> Discovery:
    """Returns the parts of one kind that installed distributions register.

    A name that two distributions register is left out.
    """
    parts: dict[str, RegisteredPart] = {}
    left_out: dict[str, str] = {}
    for entry_point in importlib.metadata.entry_points(group=GROUP_PREFIX + kind):
        name = entry_point.name
        try:
            part = _describe(entry_point)
        except (ValueError, ValidationError, OSError) as error:
            left_out[name] = (
                summarise_faults(error, name) if isinstance(error, ValidationError) else str(error)
            )
            continue
        if name in parts:
            left_out[name] = (
                "two distributions register the name: uninstall one, or rename its part"
            )
        parts[name] = part
    return Discovery({name: part for name, part in parts.items() if name not in left_out}, left_out)


def _describe(entry_point: EntryPoint) -> RegisteredPart:
    if not re.fullmatch(NAME_PATTERN, entry_point.name):
        raise ValueError(
            "the name must consist of letters, digits, '_', '.' and '-', at most 64 of them"
        )
    return RegisteredPart(entry_point.name, entry_point, _code_of(entry_point))


def _code_of(entry_point: EntryPoint) -> EntrypointCode:
    distribution = entry_point.dist
    if distribution is None:
        raise ValueError("it belongs to no distribution")
    code = code_of_distribution(str(distribution.metadata["Name"]))
    return EntrypointCode(
        kind="entrypoint", distribution=code.distribution, version=code.version, digest=code.digest
    )
