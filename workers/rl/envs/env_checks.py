"""Checks what an environment returns, and describes what is wrong with it.

Checks of whole observations are slow. An environment's first steps and episodes are checked, and
later values only after they have caused an exception.
"""

import math
import reprlib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Real
from traceback import walk_tb
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt
from gymnasium import Space, spaces

from workers.core.errors import EnvironmentFailedError
from workers.core.types import Array

CHECKED_STEPS: Final = 100
"""Number of first steps whose results are checked."""
CHECKED_EPISODES: Final = 10
"""Number of first episodes whose first and last observations are checked."""

_OLD_API: Final = "an environment of the old gym can be wrapped by shimmy"


class UnexpectedValueError(ValueError):
    """A value that an environment must not return.

    Args:
        value: What the environment returned.
        remedy: What to change.
    """

    def __init__(self, value: str, remedy: str) -> None:
        super().__init__(f"{value}: {remedy}")
        self.value = value
        self.remedy = remedy


def raise_fault(error: Exception, where: str) -> NoReturn:
    """Raises an error that names what an environment returned.

    Args:
        error: The exception that the returned values caused.
        where: The step and episode.

    Raises:
        EnvironmentFailedError: Names the value if `error` is an UnexpectedValueError.
    """
    if isinstance(error, UnexpectedValueError):
        raise EnvironmentFailedError(
            f"the environment returned {error.value} {where}: {error.remedy}"
        ) from None
    raise EnvironmentFailedError(
        f"what the environment returned {where} cannot be read: {type(error).__name__}: {error}"
    ) from error


def describe_place(step: int, episode: int, environment: int) -> str:
    """Returns a text of a step, or of the reset if `step` is 0, for error messages."""
    place = f"step {step}" if step else "the reset"
    return f"in {place} of episode {episode} (environment {environment})"


def describe_exception(error: BaseException) -> str:
    """Returns type and message of an environment's exception, with a remedy where it is known."""
    frames = [frame.f_code for frame, _ in walk_tb(error.__traceback__)]
    remedy = ""
    if frames and "gymnasium" in frames[-1].co_filename:
        if "unpack" in str(error):
            remedy = (
                "; reset returns (observation, info), and step returns (observation, reward, "
                f"terminated, truncated, info); {_OLD_API}"
            )
        elif frames[-1].co_name == "_add_info":
            remedy = (
                "; arrays of one name in the infos must have one shape: leave them out, or use "
                "lists"
            )
    return f"{type(error).__name__}: {error}{remedy}"


def check_reset(result: Any, space: Space[Any]) -> None:
    """Checks what `reset` returned.

    Args:
        result: The observation, an element of `space`, and the info.
        space: The environment's observation space.

    Raises:
        UnexpectedValueError: If it is anything else.
    """
    check_reset_arity(result)
    observation, info = result
    check_info(info)
    check_observation(observation, space)


def check_reset_arity(result: Any) -> None:
    """Raises UnexpectedValueError if what `reset` returned is not a tuple of two values."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise UnexpectedValueError(
            _describe_result(result), f"reset returns (observation, info); {_OLD_API}"
        )


def check_step(result: Any, space: Space[Any]) -> None:
    """Checks what `step` returned.

    Args:
        result: Observation, reward, terminated, truncated and info.
        space: The environment's observation space.

    Raises:
        UnexpectedValueError: If it is anything else.
    """
    check_step_arity(result)
    observation, reward, terminated, truncated, info = result
    read_reward(reward)
    read_flag(terminated, "terminated")
    read_flag(truncated, "truncated")
    check_info(info)
    read_flag(info.get("needs_reset", False), "info['needs_reset']")
    check_observation(observation, space)


def check_step_arity(result: Any) -> None:
    """Raises UnexpectedValueError if what `step` returned is not five values."""
    if not isinstance(result, Sequence) or len(result) != 5:
        raise UnexpectedValueError(
            _describe_result(result),
            f"step returns (observation, reward, terminated, truncated, info); {_OLD_API}",
        )


def read_reward(reward: Any) -> float:
    """Returns a reward as a float; an array with one entry is a number, too.

    Raises:
        UnexpectedValueError: If it is not one real number.
    """
    number = _only_entry(reward)
    if not isinstance(number, Real | Decimal | np.bool_):
        raise UnexpectedValueError(
            f"the reward {describe(reward)}", "return a number, or an array with one entry"
        )
    return float(number)


def read_flag(flag: Any, name: str) -> bool:
    """Returns a flag as a boolean; an array with one entry is a boolean, too.

    Raises:
        UnexpectedValueError: If it is neither a boolean nor a number.
    """
    one = _only_entry(flag)
    if not isinstance(one, bool | np.bool_ | Real):
        raise UnexpectedValueError(f"{name} {describe(flag)}", "return True or False")
    return bool(one)


def read_rewards(rewards: Any, count: int) -> npt.NDArray[np.float64]:
    """Returns the rewards of a vector environment, float64 [count].

    Raises:
        UnexpectedValueError: If they are not `count` real numbers.
    """
    return _column(rewards, count, "the rewards", f"return {count} numbers").astype(
        np.float64, copy=False
    )


def read_flags(flags: Any, count: int, name: str) -> npt.NDArray[np.bool_]:
    """Returns the flags of a vector environment, bool [count].

    Raises:
        UnexpectedValueError: If they are not `count` booleans or numbers.
    """
    return _column(flags, count, name, f"return {count} booleans").astype(np.bool_, copy=False)


def read_success(info: Mapping[str, Any]) -> bool | None:
    """Returns whether an episode succeeded, by `is_success` or `success` of its last info.

    Returns `None` if the info contains neither.

    Raises:
        UnexpectedValueError: If it is neither a boolean nor a number.
    """
    for name in ("is_success", "success"):
        if name in info:
            flag = info[name]
            return None if flag is None else read_flag(flag, f"info[{name!r}]")
    return None


def check_info(info: Any) -> None:
    """Raises UnexpectedValueError if `info` is not a mapping."""
    if not isinstance(info, Mapping):
        raise UnexpectedValueError(
            f"the info {describe(info)}", "return a dict, which may be empty"
        )


def check_observation(observation: Any, space: Space[Any], key: str = "") -> None:
    """Checks that an observation is an element of its space.

    Of a number only the value matters, so that float64 in a box of float32 is an element if its
    float32 is one, and int64 in a box of uint8 if its value is in the bounds.

    Args:
        observation: What the environment returned.
        space: The observation space, or the part at `key`.
        key: Names and indices of the part, such as `a.0`.

    Raises:
        UnexpectedValueError: Names key, shape, dtype and bounds.
    """
    match space:
        case spaces.Dict():
            _check_parts(observation, space, key, space.spaces, Mapping)
        case spaces.Tuple():
            parts = dict(enumerate(space.spaces))
            _check_parts(observation, space, key, parts, Sequence | np.ndarray)
        case spaces.Box() | spaces.Discrete() | spaces.MultiDiscrete() | spaces.MultiBinary():
            check_array(observation, space, key=key)
        case _ if not _contains(space, observation):
            raise _refuse(observation, space, key, "return an element of the space")


def check_array(
    observation: Any, space: Space[Any], lead: tuple[int, ...] = (), key: str = ""
) -> None:
    """Checks that arrays are elements of a space of arrays or numbers.

    Args:
        observation: Elements, [*lead, *shape of the space].
        space: Their space.
        lead: Leading dimensions.
        key: Names and indices of the part.

    Raises:
        UnexpectedValueError: Like `check_observation`.
    """
    try:
        array = np.asarray(observation)
    except (TypeError, ValueError, RuntimeError) as error:
        raise _refuse(observation, space, key, f"it is no array ({error})") from None
    low, high = _bounds(space)
    wanted = np.dtype(space.dtype)
    if array.dtype.kind not in "biuf":
        raise _refuse(observation, space, key, "return an array of numbers")
    if array.shape != (*lead, *(space.shape or ())):
        raise _refuse(
            observation, space, key, "return the shape of the space, or declare the other one"
        )
    if array.dtype.kind == "f" and wanted.kind == "f":
        with np.errstate(over="ignore"):
            stored = array.astype(wanted)
        outside = ~((stored >= low) & (stored <= high)) | (np.isfinite(array) & np.isinf(stored))
    elif array.dtype.kind == "f" and not isinstance(space, spaces.MultiBinary):
        raise _refuse(
            observation, space, key, f"return {wanted}, or declare a space of {array.dtype}"
        )
    else:
        outside = ~((array >= low) & (array <= high))
        if array.dtype.kind == "f":
            outside |= array % 1 != 0
    if outside.any():
        raise _refuse(
            observation,
            space,
            key,
            f"{_describe_entry(array, outside)} is out of bounds: declare the bounds that the "
            "observations have, or keep these within the bounds",
        )


def describe(value: Any) -> str:
    """Returns a short text of a value, with shape and dtype or with its type."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if value is None:
        return "None"
    if shape is None or dtype is None:
        return f"{reprlib.repr(value)} (type {type(value).__name__})"
    if isinstance(value, np.ndarray) and value.ndim:
        text = np.array2string(value.reshape(-1), threshold=8, edgeitems=3, separator=", ")
    else:
        text = str(value) if isinstance(value, np.generic | np.ndarray) else reprlib.repr(value)
    return f"{text} (shape {tuple(shape)}, dtype {dtype})"


def describe_space(space: Space[Any]) -> str:
    """Returns a short text of a space, with shape, dtype and bounds where it has them."""
    kind = type(space).__name__
    match space:
        case spaces.Dict():
            return f"a Dict of {', '.join(map(str, space.spaces))}"
        case spaces.Tuple():
            return f"a Tuple of {len(space.spaces)} spaces"
        case spaces.Box() | spaces.Discrete() | spaces.MultiDiscrete() | spaces.MultiBinary():
            low, high = (np.asarray(end) for end in _bounds(space))
            ends = " to ".join(
                str(end.flat[0])
                if (end == end.flat[0]).all()
                else np.array2string(end.reshape(-1), threshold=8, edgeitems=3, separator=", ")
                for end in (low, high)
            )
            return f"a {kind} of shape {space.shape}, dtype {space.dtype}, bounds {ends}"
    return f"a {kind}"


def _check_parts(
    observation: Any, space: Space[Any], key: str, parts: Mapping[Any, Space[Any]], kind: Any
) -> None:
    """Checks an element of a `Dict` or `Tuple` space, whose spaces are `parts`."""
    if not isinstance(observation, kind) or isinstance(observation, str):
        raise _refuse(observation, space, key, f"return a {type(space).__name__.lower()}")
    given = list(observation) if isinstance(observation, Mapping) else range(len(observation))
    for one in parts:
        if one not in given:
            raise _refuse(
                observation, space, key, f"{one!r} is missing: return it, or do not declare it"
            )
    for one in given:
        if one not in parts:
            raise _refuse(
                observation, space, key, f"{one!r} is not declared: declare it, or leave it out"
            )
    for one, part in parts.items():
        check_observation(observation[one], part, f"{key}.{one}" if key else str(one))


def _contains(space: Space[Any], observation: Any) -> bool:
    try:
        return bool(space.contains(observation))
    except Exception:  # noqa: BLE001 - a space of a third party may raise anything
        return False


def _refuse(observation: Any, space: Space[Any], key: str, remedy: str) -> UnexpectedValueError:
    part = f" of {key}" if key else ""
    return UnexpectedValueError(
        f"the observation{part} {describe(observation)}, where observation_space{part} is "
        f"{describe_space(space)},",
        remedy,
    )


def _bounds(space: Space[Any]) -> tuple[Any, Any]:
    """Returns the least and the largest values of a space of arrays or numbers."""
    match space:
        case spaces.Box():
            return space.low, space.high
        case spaces.Discrete():
            return int(space.start), int(space.start) + int(space.n) - 1
        case spaces.MultiDiscrete():
            return space.start, space.start + (space.nvec - 1)
    return 0, 1


def _describe_entry(array: Array, mask: Array) -> str:
    """Returns a text of the first entry where `mask` is true."""
    if not array.ndim:
        return str(array)
    index = tuple(np.argwhere(mask)[0].tolist())
    return f"{array[index]} at {list(index)}"


def _column(values: Any, count: int, name: str, remedy: str) -> Array:
    """Returns `count` numbers or booleans of any shape as an array [count]."""
    array = np.asarray(values)
    if array.size != count or array.dtype.kind not in "biuf":
        raise UnexpectedValueError(f"{name} {describe(values)}", remedy)
    return array.reshape(count)


def _only_entry(value: Any) -> Any:
    """Returns the entry of an array, tensor or list with one entry, else the value itself."""
    if isinstance(value, list | tuple):
        return _only_entry(value[0]) if len(value) == 1 else value
    shape = getattr(value, "shape", None)
    if shape is None or math.prod(shape) != 1:
        return value
    return value.item()


def _describe_result(result: Any) -> str:
    return f"{len(result)} values" if isinstance(result, tuple) else describe(result)
