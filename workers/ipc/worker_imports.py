"""Modules that a worker imports because they register environments: the option `--import`.

The names are passed in the environment of the processes: to the catalogue, to every trainer and to
the processes that a trainer starts. A definition can name no other module. This
module imports none of them.
"""

import importlib.machinery
import importlib.util
import os
import re
import sys
from collections.abc import MutableMapping, Sequence
from pathlib import Path
from typing import Final

from palestra.contract.names import WORKER_IMPORTS

_MODULE: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)


def allowed_imports() -> tuple[str, ...]:
    """Returns the modules that this process may import for environments."""
    return tuple(name for name in os.environ.get(WORKER_IMPORTS, "").split(",") if name)


def check_imports(names: Sequence[str]) -> tuple[str, ...]:
    """Returns the names without duplicates.

    Raises:
        ValueError: If one is not a module's name, or Python does not find its top-level package.
    """
    for name in names:
        if not _MODULE.fullmatch(name):
            raise ValueError(
                f"{name!r} is not the name of a module, such as my_package.environments"
            )
        if _spec_of(name) is None:
            raise ValueError(
                f"Python finds no module {name.partition('.')[0]!r}: install its package for "
                f"{sys.executable}, "
                "or start in the directory that holds it"
            )
    return tuple(dict.fromkeys(names))


def set_allowed_imports(names: Sequence[str], environ: MutableMapping[str, str]) -> None:
    """Writes the modules' names into the environment of a subprocess.

    The working directory is put onto Python's path if one of the modules is there.

    Trainers work in directories of their own, so a module that is found here would not be found
    there.

    Args:
        names: Result of `check_imports`.
        environ: The environment to which the variables are added.
    """
    if not names:
        return
    environ[WORKER_IMPORTS] = ",".join(names)
    here = Path.cwd()
    if any(_directory_of(name) == here for name in names):
        paths = [path for path in environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        environ["PYTHONPATH"] = os.pathsep.join(
            [*paths, *([] if str(here) in paths else [str(here)])]
        )


def _directory_of(name: str) -> Path | None:
    spec = _spec_of(name)
    if spec is None or spec.origin is None:
        return None
    file = Path(spec.origin).absolute()
    return file.parent if spec.submodule_search_locations is None else file.parents[1]


def _spec_of(name: str) -> importlib.machinery.ModuleSpec | None:
    package = name.partition(".")[0]
    try:
        spec = importlib.util.find_spec(package)
    except ValueError:
        return None
    # The worker itself imports nothing from the current directory.
    return spec or importlib.machinery.PathFinder.find_spec(package, [str(Path.cwd())])
