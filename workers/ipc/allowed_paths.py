"""Directories whose files definitions may name: the option `--allow-path`.

They are passed in the environment of the processes, to every trainer and to the processes that a
trainer starts.
"""

import os
from collections.abc import MutableMapping, Sequence
from pathlib import Path

from palestra.contract.names import WORKER_ALLOWED_PATHS


def list_allowed_paths() -> tuple[Path, ...]:
    """Returns the directories whose files definitions may name in this process."""
    texts = os.environ.get(WORKER_ALLOWED_PATHS, "").split(os.pathsep)
    return tuple(Path(text) for text in texts if text)


def check_allowed_paths(texts: Sequence[str]) -> tuple[Path, ...]:
    """Returns absolute paths without symbolic links.

    Raises:
        ValueError: If one is not a directory, or has the separator of such lists in its name.
    """
    paths = []
    for text in texts:
        path = Path(text).expanduser().resolve()
        if not path.is_dir():
            raise ValueError(f"{text!r} is not a directory on this machine")
        if os.pathsep in str(path):
            raise ValueError(f"{text!r} has {os.pathsep!r} in its path: name it by another path")
        paths.append(path)
    return tuple(paths)


def set_allowed_paths(paths: Sequence[Path], environ: MutableMapping[str, str]) -> None:
    """Writes the directories into the environment of a subprocess.

    Args:
        paths: Result of `check_allowed_paths`.
        environ: The environment to which the variable is added.
    """
    if paths:
        environ[WORKER_ALLOWED_PATHS] = os.pathsep.join(map(str, paths))
