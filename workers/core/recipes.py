"""Recipes: how an object was built, so that a snapshot can build it again without pickle.

A recipe is data: for each object the import path of its class and the arguments of its constructor,
where an argument may be another such object. Reading a recipe imports code that a file names, so
only two things are permitted: calling a class that its author marked with `rebuildable` with the
recorded arguments, and building objects of other libraries by a `Kind` that a module of this
package registered. No other callable is looked up or called.
"""

import functools
import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from workers.core.errors import WorkerError
from workers.core.types import StateTree

MARK: Final = "__palestra_rebuildable__"
_BUILT: Final = "_palestra_built"
_MOVED: Final = {
    "workers.envs.own": "workers.rl.envs.builtin",
}
"""Present module, by the module that recipes of older versions name."""

_Class = TypeVar("_Class", bound=type)


class RecipeError(WorkerError):
    """An object has no recipe, or a recipe cannot be followed here."""


class _Construction(NamedTuple):
    """The arguments that an object was built with."""

    args: tuple[object, ...]
    kwargs: dict[str, object]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of objects of other libraries with its own recipe, such as environments."""

    name: str
    """Names the kind in recipes."""
    matches: Callable[[object], bool]
    write: Callable[[Any], StateTree]
    """Returns the recipe of an object; raises `RecipeError` if it cannot be expressed as data."""
    read: Callable[[StateTree], Any]
    """Builds the object; must check every callable that the recipe names before calling it."""


_KINDS: Final[dict[str, Kind]] = {}


def register_kind(kind: Kind) -> None:
    """Registers a kind of objects of other libraries."""
    _KINDS[kind.name] = kind


def rebuildable(cls: _Class) -> _Class:
    """Marks a class whose objects a snapshot may construct again.

    Its objects remember the arguments of their constructor.

    The class must be importable by its path. Subclasses do not inherit the mark.

    Raises:
        TypeError: If objects of the class have no `__dict__`.
    """
    if getattr(cls, "__dictoffset__", 0) == 0:
        raise TypeError(
            f"{cls.__name__} cannot be rebuildable: its objects have no __dict__; leave __slots__ "
            "away"
        )
    construct = cls.__init__  # type: ignore[misc]

    @functools.wraps(construct)
    def construct_and_remember(self: object, *args: object, **kwargs: object) -> None:
        if type(self) is cls:
            object.__setattr__(
                self, _BUILT, _Construction(_copy_arguments(args), _copy_arguments(kwargs))
            )
        construct(self, *args, **kwargs)

    cls.__init__ = construct_and_remember  # type: ignore[misc]
    setattr(cls, MARK, True)
    return cls


def is_rebuildable(value: object) -> bool:
    """Returns whether a value is a marked class or an instance of a marked class."""
    cls = value if isinstance(value, type) else type(value)
    return MARK in vars(cls)


def remembers_arguments(name: str) -> bool:
    """Returns whether `name` is the attribute in which `rebuildable` stores arguments."""
    return name == _BUILT


def recipes_of(parts: Mapping[str, object]) -> StateTree:
    """Returns the recipes of objects; an object that several of them share is built once.

    Raises:
        RecipeError: If a part, or an argument of one, has no recipe; it names the part.
    """
    writer = _Writer()
    return {name: writer.write(part, name) for name, part in parts.items()}


def rebuild(recipes: StateTree) -> dict[str, Any]:
    """Builds the objects that `recipes_of` described.

    Raises:
        RecipeError: If a recipe names anything but a marked class that can be imported here.
    """
    reader = _Reader()
    return {name: reader.read(recipe) for name, recipe in recipes.items()}


class _Writer:
    """Numbers objects in the order in which they will be built: arguments first."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._kept: list[object] = []

    def write(self, value: object, path: str) -> object:  # noqa: PLR0911 - one case per kind
        """Returns the recipe of a value."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if _is_array(value):
            return value
        if isinstance(value, list | tuple):
            items = [self.write(item, f"{path}[{index}]") for index, item in enumerate(value)]
            return items if isinstance(value, list) else {"$tuple": items}
        if isinstance(value, dict):
            return self._dict(value, path)
        if isinstance(value, type):
            return {"$type": _path_of(value, path)}
        return self._object(value, path)

    def _dict(self, value: dict[Any, Any], path: str) -> StateTree:
        if any(not isinstance(key, str) or key.startswith("$") for key in value):
            raise RecipeError(
                f"{path}: the keys of a dict in a recipe must be strings that do not begin with '$'"
            )
        return {key: self.write(item, f"{path}[{key!r}]") for key, item in value.items()}

    def _object(self, value: object, path: str) -> StateTree:
        if (number := self._numbers.get(id(value))) is not None:
            return {"$same": number}
        recipe = self._construction(value, path)
        self._numbers[id(value)] = len(self._numbers)
        self._kept.append(value)
        return recipe

    def _construction(self, value: object, path: str) -> StateTree:
        if is_rebuildable(value) and isinstance(
            built := getattr(value, _BUILT, None), _Construction
        ):
            args = [self.write(item, f"{path}.{index}") for index, item in enumerate(built.args)]
            kwargs = {key: self.write(item, f"{path}.{key}") for key, item in built.kwargs.items()}
            return {"$build": _path_of(type(value), path), "args": args, "kwargs": kwargs}
        for kind in _KINDS.values():
            if kind.matches(value):
                try:
                    return {"$kind": kind.name, "how": kind.write(value)}
                except RecipeError as error:
                    raise RecipeError(f"{path}: {error}") from error
        raise RecipeError(
            f"{path}: {type(value).__qualname__} has no recipe: mark its class with "
            "workers.core.recipes.rebuildable"
        )


class _Reader:
    """Builds objects in the order in which `_Writer` numbered them."""

    def __init__(self) -> None:
        self._built: list[object] = []

    def read(self, recipe: object) -> object:  # noqa: PLR0911 - one case per kind
        """Returns the value of a recipe."""
        if isinstance(recipe, list):
            return [self.read(item) for item in recipe]
        if not isinstance(recipe, dict):
            return recipe
        if "$tuple" in recipe:
            return tuple(self.read(item) for item in recipe["$tuple"])
        if "$type" in recipe:
            return marked_class(str(recipe["$type"]))
        if "$same" in recipe:
            return self._built[int(recipe["$same"])]
        if "$build" in recipe or "$kind" in recipe:
            self._built.append(self._build(recipe))
            return self._built[-1]
        return {key: self.read(item) for key, item in recipe.items()}

    def _build(self, recipe: StateTree) -> object:
        if "$kind" in recipe:
            kind = _KINDS.get(str(recipe["$kind"]))
            if kind is None:
                raise RecipeError(
                    f"no kind of recipe is called {recipe['$kind']!r} here: call setup before "
                    "restore"
                )
            return kind.read(recipe["how"])
        cls = marked_class(str(recipe["$build"]))
        args = [self.read(item) for item in recipe["args"]]
        kwargs = {key: self.read(item) for key, item in recipe["kwargs"].items()}
        return cls(*args, **kwargs)


def follow_move(path: str) -> str:
    """Returns a path `module:name` with the present name of a module that was moved."""
    module_name, colon, name = path.rpartition(":")
    return f"{_MOVED.get(module_name, module_name)}{colon}{name}"


def marked_class(path: str) -> type:
    """Returns the class at `module:name`, if it is marked.

    Raises:
        RecipeError: If the class is not marked, or cannot be imported here.
    """
    module_name, _, name = follow_move(path).partition(":")
    words = [*module_name.split("."), *name.split(".")]
    if not all(word.isidentifier() for word in words) or words[0] in sys.stdlib_module_names:
        raise RecipeError(f"{path!r} cannot be the path of a rebuildable class")
    try:
        found: Any = sys.modules.get(module_name) or importlib.import_module(module_name)
    except ImportError as error:
        raise RecipeError(
            f"{path} cannot be imported here ({error}): put its module on the path, or call setup "
            "before restore"
        ) from error
    for word in name.split("."):
        found = vars(found).get(word) if hasattr(found, "__dict__") else None
    if not isinstance(found, type) or not is_rebuildable(found):
        raise RecipeError(
            f"{path} is not a class marked with workers.core.recipes.rebuildable, so a snapshot "
            "may not build it"
        )
    return found


def _copy_arguments(arguments: Any) -> Any:
    """Copies arrays, which their owner may change later; everything else is kept as it is."""
    if isinstance(arguments, dict):
        return {key: _copy_if_array(value) for key, value in arguments.items()}
    return tuple(_copy_if_array(value) for value in arguments)


def _copy_if_array(value: Any) -> object:
    if isinstance(value, np.ndarray):
        return value.copy()
    return value.detach().clone() if _is_array(value) else value


def _is_array(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return not value.dtype.hasobject
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _path_of(cls: type, path: str) -> str:
    if not is_rebuildable(cls):
        raise RecipeError(
            f"{path}: {cls.__qualname__} has no recipe: mark it with "
            "workers.core.recipes.rebuildable"
        )
    if "<locals>" in cls.__qualname__:
        raise RecipeError(
            f"{path}: {cls.__qualname__} is defined within a function and cannot be imported: "
            "move it to a module"
        )
    return f"{cls.__module__}:{cls.__qualname__}"
