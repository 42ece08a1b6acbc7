"""Parts that installed distributions register under entry points, and the digest of the code that stands behind them.

A distribution declares, say, `mine = "package.module:factory"` in the group `palestra.agents`. Names are looked up among the declared ones
and never become a path or a module. Discovery reads metadata; code is imported only when a part is described or built.
"""

import hashlib
import importlib.metadata
import importlib.util
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import ValidationError

from palestra.contract.definition import EntrypointCode
from palestra.contract.names import NAME_PATTERN
from palestra.contract.wording import summary
from workers.core.errors import PartNotFoundError

Kind = Literal["agents", "model_functions", "input_functions"]
KINDS: Final[tuple[Kind, ...]] = ("agents", "model_functions", "input_functions")
GROUP_PREFIX: Final = "palestra."
"""A group is this and the kind."""
_METADATA: Final = (".dist-info", ".egg-info")


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
            raise PartNotFoundError(f"{self.name!r} of {where} cannot be imported: {type(error).__name__}: {error}") from error


@dataclass(frozen=True, slots=True)
class Discovery:
    """The parts of one kind, and what was left out."""

    parts: Mapping[str, RegisteredPart]
    left_out: Mapping[str, str]
    """Name to the reason, a sentence."""


@cache
def discover(kind: Kind) -> Discovery:
    """Returns the parts of one kind that installed distributions register; a name that two of them claim is left out."""
    parts: dict[str, RegisteredPart] = {}
    left_out: dict[str, str] = {}
    for entry_point in importlib.metadata.entry_points(group=GROUP_PREFIX + kind):
        name = entry_point.name
        try:
            part = _describe(entry_point)
        except (ValueError, ValidationError, OSError) as error:
            left_out[name] = summary(error, name) if isinstance(error, ValidationError) else str(error)
            continue
        if name in parts:
            left_out[name] = "two distributions register the name: uninstall one, or rename its part"
        parts[name] = part
    return Discovery({name: part for name, part in parts.items() if name not in left_out}, left_out)


def _describe(entry_point: EntryPoint) -> RegisteredPart:
    if not re.fullmatch(NAME_PATTERN, entry_point.name):
        raise ValueError("the name must consist of letters, digits, '_', '.' and '-', at most 64 of them")
    return RegisteredPart(entry_point.name, entry_point, _code_of(entry_point))


def digest_of(distribution: Distribution) -> str:
    """Returns the SHA-256 over names and contents of a distribution's files, its own entry points among them.

    What installers write and what Python compiles is left out. Packages that a distribution keeps elsewhere, as an editable install does,
    count as its files.

    Raises:
        ValueError: If no file of it can be found.
    """
    files = dict(_recorded_files(distribution)) | dict(_package_files(distribution))
    if not any(not _is_metadata(name) for name in files):
        raise ValueError("none of its files can be found: install it as a wheel")
    total = hashlib.sha256()
    for name in sorted(files):
        with files[name].open("rb") as file:
            total.update(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return total.hexdigest()


@cache
def _digest_by_name(name: str) -> str:
    return digest_of(importlib.metadata.distribution(name))


def _code_of(entry_point: EntryPoint) -> EntrypointCode:
    distribution = entry_point.dist
    if distribution is None:
        raise ValueError("it belongs to no distribution")
    name = str(distribution.metadata["Name"])
    return EntrypointCode(kind="entrypoint", distribution=name, version=distribution.version, digest=_digest_by_name(name))


def _recorded_files(distribution: Distribution) -> Iterator[tuple[str, Path]]:
    for file in distribution.files or ():
        kept = file.name == "entry_points.txt" or not any(part.endswith(_METADATA) for part in file.parts)
        path = Path(str(file.locate()))
        if kept and not _is_made(file.as_posix()) and ".." not in file.parts and path.is_file():
            yield "entry_points.txt" if _is_metadata(file.as_posix()) else file.as_posix(), path


def _package_files(distribution: Distribution) -> Iterator[tuple[str, Path]]:
    """Yields the files of the packages that the entry points lie in; nothing is imported for it."""
    for top in {entry_point.module.partition(".")[0] for entry_point in distribution.entry_points}:
        spec = importlib.util.find_spec(top)
        if spec is None or spec.origin is None:
            continue
        if spec.submodule_search_locations is None:
            yield Path(spec.origin).name, Path(spec.origin)
            continue
        for place in spec.submodule_search_locations:
            for path in Path(place).rglob("*"):
                name = f"{top}/{path.relative_to(place).as_posix()}"
                if path.is_file() and not _is_made(name):
                    yield name, path


def _is_metadata(name: str) -> bool:
    return name == "entry_points.txt" or any(part.endswith(_METADATA) for part in name.split("/"))


def _is_made(name: str) -> bool:
    return "__pycache__" in name or name.endswith((".pyc", ".pth"))
