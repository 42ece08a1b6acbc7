"""Finds the presets: the submissions of `examples/`, which the package contains."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from palestra.contract.presets import PresetView

_FIRST: Final = ("cartpole-ppo", "cartpole-dqn")
"""Presets that train within a minute on a CPU: a list begins with them."""


def find_directory() -> Path | None:
    """Returns the directory of the presets: of the checkout, else of the installed package.

    `None` if neither has one.
    """
    package = Path(__file__).resolve().parent
    places = (package.parent / "examples", package / "examples")
    return next((place for place in places if (place / f"{_FIRST[0]}.yaml").is_file()), None)


@cache
def list_presets() -> tuple[PresetView, ...]:
    """Returns all presets: those that train fast first, then by directory and name."""
    directory = find_directory()
    if directory is None:
        return ()
    found = [_read(path, directory) for path in directory.rglob("*.yaml")]
    return tuple(sorted(found, key=lambda one: (_place(one.name), "/" in one.name, one.name)))


def _place(name: str) -> int:
    return _FIRST.index(name) if name in _FIRST else len(_FIRST)


def _read(path: Path, directory: Path) -> PresetView:
    text = path.read_text(encoding="utf-8")
    definition: dict[str, Any] = yaml.safe_load(text)["definition"]
    is_rl = definition["kind"] == "rl"
    return PresetView(
        name=path.relative_to(directory).with_suffix("").as_posix(),
        title=definition["name"],
        description=definition.get("notes") or " ".join(_read_comment(text)),
        agent=definition["agent" if is_rl else "estimator"]["name"],
        env=definition["env"]["id"] if is_rl else definition["train_input"]["name"],
        document=text,
    )


def _read_comment(text: str) -> Iterator[str]:
    """Yields the lines of the comment at the head of a file."""
    for line in text.splitlines():
        if not line.startswith("#"):
            return
        yield line.removeprefix("#").strip()
