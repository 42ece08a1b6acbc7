"""Refuses paths among the arguments of environments.

Environments open what such an argument names: `xml_file` of MuJoCo's makes any file be parsed.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from workers.core.errors import DefinitionError

_PATH: Final = re.compile(
    r"~|[/\\]|\.{1,2}([/\\]|$)|[A-Za-z]:[/\\]|file:|.*[/\\]\.\.([/\\]|$)",
    re.DOTALL | re.IGNORECASE,
)
"""A text that begins at a root, a home or the working directory, or that leaves a directory.

A name such as `ant.xml`, which an environment looks for among its own files, is no such text.
"""


def check_paths(kwargs: Mapping[str, object], allowed: Sequence[Path]) -> None:
    """Checks that no argument of an environment is a path outside of the allowed directories.

    Args:
        kwargs: Arguments of the environment.
        allowed: Directories, without symbolic links.

    Raises:
        DefinitionError: If one is; the message names the argument and the remedy.
    """
    for name, value in kwargs.items():
        if not isinstance(value, str) or not _PATH.match(value):
            continue
        if not _is_below(value, allowed):
            raise DefinitionError(
                f"env.kwargs.{name}: {value!r} is a path, which this worker does not allow. Start "
                "it with --allow-path and the directory of the file, or install the file with the "
                "environment's package"
            )


def _is_below(text: str, allowed: Sequence[Path]) -> bool:
    path = Path(text)
    if not path.is_absolute() or "\0" in text:
        return False
    real = path.resolve()
    return any(real.is_relative_to(directory) for directory in allowed)
