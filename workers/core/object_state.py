"""Saves and restores the state of objects that define no `state_dict`, by their attributes.

What belongs to the state of an object, in this order:

1. an object with `state_dict` and `load_state_dict` (modules, optimisers, memories): the result of
   `state_dict`, and nothing else;
2. a generator of random numbers of the standard library, numpy or torch;
3. plain data: numbers, strings, arrays, tensors, and lists, tuples, deques and dicts of them;
4. lists, tuples and dicts that hold any of these, member by member;
5. any other object of a class from outside the standard library, Gymnasium, numpy and torch: its
   attributes, by the same rule.

Everything else (functions, classes, environments, samplers, loggers, files) counts as set-up and is
not saved. An object that is referenced twice is saved once. Existing objects, arrays and tensors
are loaded in place where possible, so that all references to them see the restored values.
"""

import io
import logging
import random
import sys
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from workers.core.errors import WorkerError
from workers.core.recipes import remembers_arguments
from workers.core.rng import generator_state, load_generator_state
from workers.core.types import StateTree

_WITHOUT_OWN_STATE: Final = frozenset({"gymnasium", "numpy", "torch", "pygame", "builtins"})


class StateMismatchError(WorkerError):
    """A captured state does not fit the object that it is loaded into."""


def state_of(value: object, path: str, skip: Iterable[object] = ()) -> StateTree | None:
    """Returns the state of an object by the rule of the module; `None` if it has none.

    Args:
        value: The object.
        path: Name of the object in error messages.
        skip: Objects that are saved elsewhere.

    Raises:
        TypeError: If a `state_dict` holds a value that cannot be saved; the message names it.
    """
    return _Saver(skip).node(value, path)


def load_state(value: object, state: StateTree | None, path: str) -> None:
    """Restores an object from a state that `state_of` returned for an object of the same kind.

    Raises:
        StateMismatchError: If the object lacks a part of the state, or a part has another type.
    """
    if state is not None:
        _Loader().load(value, state, path)


def pack(value: Any, path: str) -> Any:  # noqa: PLR0911 - one case per kind
    """Returns plain data as a tree that a snapshot can hold; dict keys may be any plain data.

    Raises:
        TypeError: If a value is not plain data; the message names it.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return (
            value
            if not value.dtype.hasobject
            else {"$objects": pack(value.tolist(), path), "$shape": list(value.shape)}
        )
    if _is_tensor(value):
        return value.detach()
    if isinstance(value, list | tuple | deque):
        return _pack_sequence(value, path)
    if isinstance(value, dict):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: pack(item, f"{path}.{key}") for key, item in value.items()}
        return {
            "$pairs": [
                [pack(key, path), pack(item, f"{path}[{key!r}]")] for key, item in value.items()
            ]
        }
    raise TypeError(
        f"{path}: a {type(value).__qualname__} cannot be saved; a state holds arrays, tensors, "
        "numbers, strings, lists and dicts"
    )


def unpack(value: object) -> Any:  # noqa: PLR0911 - one case per kind
    """Inverse of `pack`; NumPy scalars become Python scalars."""
    if isinstance(value, list):
        return [unpack(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$pairs" in value:
        return {unpack(key): unpack(item) for key, item in value["$pairs"]}
    if "$tuple" in value:
        return tuple(unpack(item) for item in value["$tuple"])
    if "$deque" in value:
        return deque((unpack(item) for item in value["$deque"]), value["$longest"])
    if "$objects" in value:
        return _object_array(unpack(value["$objects"]), value["$shape"])
    return {key: unpack(item) for key, item in value.items()}


def has_state(value: object) -> bool:
    """Returns whether an object defines its own state."""
    if isinstance(value, type):
        return False
    return callable(getattr(value, "state_dict", None)) and callable(
        getattr(value, "load_state_dict", None)
    )


class _Saver:
    """Traverses one object and builds its state.

    Objects are numbered in order of traversal, so that a repeated reference is saved as a number.
    """

    def __init__(self, skip: Iterable[object]) -> None:
        self._kept = list(skip)
        self._skipped = {id(one) for one in self._kept if one is not None}
        self._numbers: dict[int, int] = {}

    def node(self, value: object, path: str) -> StateTree | None:
        """Returns the state of a value; `None` if it has no state to save."""
        if id(value) in self._skipped:
            return None
        if _is_plain(value):
            return {"$data": pack(value, path)}
        if isinstance(value, list | tuple):
            return self._items(
                ((str(index), item) for index, item in enumerate(value)), "$members", path
            )
        if isinstance(value, dict):
            return self._items(((str(key), item) for key, item in value.items()), "$members", path)
        return self._object(value, path)

    def _object(self, value: object, path: str) -> StateTree | None:
        if (number := self._numbers.get(id(value))) is not None:
            return {"$same": number}
        number = self._numbers[id(value)] = len(self._numbers)
        self._kept.append(value)
        node = self._contents(value, path)
        return None if node is None else {**node, "$number": number}

    def _contents(self, value: Any, path: str) -> StateTree | None:
        if has_state(value):
            return {"$state": pack(value.state_dict(), f"{path}.state_dict()")}
        if (generator := _generator(value)) is not None:
            return {"$generator": generator}
        return (
            self._items(vars(value).items(), "$attributes", path) if _is_searched(value) else None
        )

    def _items(self, items: Iterable[tuple[str, object]], mark: str, path: str) -> StateTree | None:
        nodes: StateTree = {}
        for name, item in items:
            if (
                not remembers_arguments(name)
                and (node := self.node(item, f"{path}.{name}")) is not None
            ):
                nodes[name] = node
        return {mark: nodes} if nodes else None


class _Loader:
    """Loads the nodes of one object in the order in which they were saved."""

    def __init__(self) -> None:
        self._objects: dict[int, object] = {}

    def load(self, value: object, state: StateTree, path: str) -> Any:
        """Returns the restored value: `value` itself where it could be changed in place."""
        if "$same" in state:
            return self._objects.get(int(state["$same"]), value)
        if "$number" in state:
            self._objects[int(state["$number"])] = value
        if "$state" in state:
            return _load_state_dict(value, state["$state"], path)
        if "$generator" in state:
            return _load_generator(value, state["$generator"], path)
        if "$attributes" in state:
            return self._attributes(value, state["$attributes"], path)
        if "$members" in state:
            return self._members(value, state["$members"], path)
        return _load_data(value, unpack(state["$data"]), path)

    def _attributes(self, value: object, nodes: StateTree, path: str) -> object:
        if not hasattr(value, "__dict__"):
            raise StateMismatchError(
                f"{path}: the snapshot holds an object with attributes, but here is "
                f"{_type_name(value)}; {_REMEDY}"
            )
        for name, node in nodes.items():
            before = vars(value).get(name)
            after = self.load(before, node, f"{path}.{name}")
            if after is not before:
                setattr(value, name, after)
        return value

    def _members(self, value: Any, nodes: StateTree, path: str) -> object:
        keys: dict[str, Any] = {}
        if isinstance(value, dict):
            keys = {str(key): key for key in value}
        elif isinstance(value, list | tuple):
            keys = {str(index): index for index in range(len(value))}
        if missing := sorted(set(nodes) - set(keys)):
            raise StateMismatchError(
                f"{path}: the snapshot holds {', '.join(missing)}, which {_type_name(value)} here "
                f"lacks; {_REMEDY}"
            )
        loaded = {
            keys[name]: self.load(value[keys[name]], node, f"{path}.{name}")
            for name, node in nodes.items()
        }
        if isinstance(value, tuple):
            has_changed = any(loaded[index] is not value[index] for index in loaded)
            return (
                tuple(loaded.get(index, item) for index, item in enumerate(value))
                if has_changed
                else value
            )
        for key, item in loaded.items():
            value[key] = item
        return value


_REMEDY: Final = (
    "set the algorithm up as it was when it was saved: its parts must exist before restore"
)


def _load_state_dict(value: Any, state: Any, path: str) -> object:
    if not has_state(value):
        raise StateMismatchError(
            f"{path}: the snapshot holds a state_dict, but here is {_type_name(value)}; {_REMEDY}"
        )
    value.load_state_dict(unpack(state))
    return value


def _load_data(value: Any, data: Any, path: str) -> object:
    if (
        isinstance(value, np.ndarray)
        and isinstance(data, np.ndarray)
        and (value.shape, value.dtype) == (data.shape, data.dtype)
    ):
        value[...] = data
        return value
    if _is_tensor(value) and _is_tensor(data):
        if value.shape != data.shape:
            if value.requires_grad:
                raise StateMismatchError(
                    f"{path}: the snapshot holds a tensor {tuple(data.shape)}, here is one of "
                    f"{tuple(value.shape)}"
                )
            return data.to(value.device)
        value.detach().copy_(data)
        return value
    return data


def _generator(value: object) -> StateTree | None:
    if isinstance(value, np.random.Generator):
        return {"numpy": generator_state(value)}
    if type(value) is random.Random:
        version, words, gauss = value.getstate()
        return {
            "python": {"version": version, "words": np.asarray(words, np.uint64), "gauss": gauss}
        }
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Generator):
        return {"torch": value.get_state()}
    return None


def _load_generator(value: Any, state: StateTree, path: str) -> object:
    kind = next(iter(state))
    if _generator(value) is None or kind not in (_generator(value) or {}):
        raise StateMismatchError(
            f"{path}: the snapshot holds a generator of {kind}, but here is {_type_name(value)}; "
            f"{_REMEDY}"
        )
    if kind == "numpy":
        load_generator_state(value, state["numpy"])
    elif kind == "python":
        one = state["python"]
        value.setstate((one["version"], tuple(int(word) for word in one["words"]), one["gauss"]))
    else:
        value.set_state(state["torch"])
    return value


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str | np.generic)


def _is_plain(value: object) -> bool:
    """Whether a value consists of data only."""
    if _is_scalar(value) or _is_tensor(value):
        return True
    if isinstance(value, np.ndarray):
        return not value.dtype.hasobject or _is_plain(value.tolist())
    if isinstance(value, list | tuple | deque):
        return all(_is_plain(item) for item in value)
    return isinstance(value, dict) and all(
        _is_plain(key) and _is_plain(item) for key, item in value.items()
    )


def _is_searched(value: object) -> bool:
    cls = type(value)
    if isinstance(value, type | logging.Logger | io.IOBase) or not hasattr(value, "__dict__"):
        return False
    if callable(getattr(value, "obtain_samples", None)):
        return False
    if (gymnasium := sys.modules.get("gymnasium")) is not None and isinstance(value, gymnasium.Env):
        return False
    package = cls.__module__.split(".")[0]
    return package == "__main__" or (
        package not in sys.stdlib_module_names and package not in _WITHOUT_OWN_STATE
    )


def _is_tensor(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _pack_sequence(value: Sequence[object] | deque[object], path: str) -> object:
    items = [pack(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, deque):
        return {"$deque": items, "$longest": value.maxlen}
    return {"$tuple": items} if isinstance(value, tuple) else items


def _object_array(items: object, shape: Sequence[int]) -> object:
    array = np.empty(int(np.prod(shape)), object)
    for index, item in enumerate(_flatten(items, len(shape))):
        array[index] = item
    return array.reshape(tuple(shape))


def _flatten(items: Any, depth: int) -> list[Any]:
    return (
        list(items) if depth <= 1 else [one for item in items for one in _flatten(item, depth - 1)]
    )


def _type_name(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__qualname__}"
