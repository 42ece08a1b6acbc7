"""The code of installed distributions and modules: name, version and digest of the files.

Defines the digest. The modules are not imported.
"""

import hashlib
import importlib.metadata
import importlib.util
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from typing import Final

from palestra.contract.code import DistributionCode, ModuleCode

_METADATA: Final = (".dist-info", ".egg-info")


def digest_of(distribution: Distribution) -> str:
    """Returns the SHA-256 over names and contents of a distribution's files.

    Its own entry points are included.

    Metadata of installers and compiled files are left out. The packages of an editable install,
    which are stored elsewhere, count as files of the distribution.

    Raises:
        ValueError: If none of its files can be found.
    """
    packages = {entry_point.module.partition(".")[0] for entry_point in distribution.entry_points}
    files = dict(_recorded_files(distribution)) | {
        name: path for top in packages for name, path in _package_files(top)
    }
    if not any(not _is_metadata(name) for name in files):
        raise ValueError("none of its files can be found: install it as a wheel")
    return _digest_of_files(files)


@cache
def code_of_distribution(name: str) -> DistributionCode:
    """Returns the code of an installed distribution.

    Raises:
        ValueError: If no file of it can be found, or a name or version is longer than the contract
            allows.
        importlib.metadata.PackageNotFoundError: If it is not installed.
    """
    found = importlib.metadata.distribution(name)
    return DistributionCode(
        distribution=str(found.metadata["Name"]), version=found.version, digest=digest_of(found)
    )


@cache
def code_of_module(top: str) -> DistributionCode | ModuleCode:
    """Returns the code of a top-level module.

    It is the code of the module's distribution if it belongs to one, else that of the module alone.

    Raises:
        ValueError: If no file of it can be found, or its name is longer than the contract allows.
    """
    distribution = _distribution_of(top)
    if distribution is not None:
        return code_of_distribution(distribution)
    files = dict(_package_files(top))
    if not files:
        raise ValueError(f"no file of the module {top} can be found")
    return ModuleCode(module=top, digest=_digest_of_files(files))


def entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Returns the entry points of a group, sorted by name whatever the order of `sys.path`."""
    found = importlib.metadata.entry_points(group=group)
    return tuple(
        sorted(
            found,
            key=lambda one: (one.name, one.value, str(one.dist and one.dist.metadata["Name"])),
        )
    )


def _distribution_of(top: str) -> str | None:
    """Returns the distribution of a module; `None` if it belongs to none.

    An editable install lists its packages only by its entry points, others list them by files.
    """
    for distribution in importlib.metadata.distributions():
        if any(
            entry_point.module.partition(".")[0] == top for entry_point in distribution.entry_points
        ):
            return str(distribution.metadata["Name"])
    return next(iter(importlib.metadata.packages_distributions().get(top, ())), None)


def _digest_of_files(files: Mapping[str, Path]) -> str:
    total = hashlib.sha256()
    for name in sorted(files):
        with files[name].open("rb") as file:
            total.update(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return total.hexdigest()


def _recorded_files(distribution: Distribution) -> Iterator[tuple[str, Path]]:
    for file in distribution.files or ():
        is_kept = file.name == "entry_points.txt" or not any(
            part.endswith(_METADATA) for part in file.parts
        )
        path = Path(str(file.locate()))
        if (
            is_kept
            and not _is_generated(file.as_posix())
            and ".." not in file.parts
            and path.is_file()
        ):
            yield "entry_points.txt" if _is_metadata(file.as_posix()) else file.as_posix(), path


def _package_files(top: str) -> Iterator[tuple[str, Path]]:
    """Yields the files of a top-level package or module."""
    spec = importlib.util.find_spec(top)
    if spec is None or spec.origin is None:
        return
    if spec.submodule_search_locations is None:
        yield Path(spec.origin).name, Path(spec.origin)
        return
    for place in spec.submodule_search_locations:
        for path in Path(place).rglob("*"):
            name = f"{top}/{path.relative_to(place).as_posix()}"
            if path.is_file() and not _is_generated(name):
                yield name, path


def _is_metadata(name: str) -> bool:
    return name == "entry_points.txt" or any(part.endswith(_METADATA) for part in name.split("/"))


def _is_generated(name: str) -> bool:
    return "__pycache__" in name or name.endswith((".pyc", ".pth"))
