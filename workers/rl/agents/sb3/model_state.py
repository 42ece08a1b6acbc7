"""State of an algorithm of Stable-Baselines3 as tensors, arrays and JSON.

The algorithm's own `save` is not used, because it writes pickles.
"""

from collections.abc import Mapping
from typing import Any, Final

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.save_util import recursive_getattr

from workers.core.types import Array, StateTree

_COUNTERS: Final = (
    "num_timesteps",
    "_episode_num",
    "_n_updates",
    "_n_calls",
    "_current_progress_remaining",
    "exploration_rate",
)
_ARRAYS: Final = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


def model_state(model: BaseAlgorithm) -> StateTree:
    """Returns the states of networks and optimisers, other learnt tensors, and counters.

    The tensors are not copied: they are valid until the next update.
    """
    modules, variables = _names(model)
    return {
        "parameters": {
            name: _pack_state(recursive_getattr(model, name).state_dict()) for name in modules
        },
        "variables": {name: recursive_getattr(model, name).detach() for name in variables},
        "counters": {name: getattr(model, name) for name in _COUNTERS if hasattr(model, name)},
    }


def load_model_state(model: BaseAlgorithm, state: StateTree) -> None:
    """Restores `state` in a new algorithm of the same definition.

    Raises:
        ValueError: If the state is of another network.
    """
    parameters: Any = {
        name: _unpack_state(saved) if "groups" in saved else saved
        for name, saved in state["parameters"].items()
    }
    try:
        model.set_parameters(parameters, exact_match=True, device=model.device)
    except (RuntimeError, KeyError) as error:
        raise ValueError(
            f"the saved parameters do not fit the agent's networks: {error}"
        ) from error
    for name, value in state["variables"].items():
        recursive_getattr(model, name).data.copy_(value)
    for name, value in state["counters"].items():
        setattr(model, name, value)


class ReplayArrays:
    """The replay buffer of an off-policy algorithm, with the interface of Palestra's memories.

    Args:
        buffer: The algorithm's replay buffer.
    """

    def __init__(self, buffer: ReplayBuffer) -> None:
        self._buffer = buffer

    @property
    def capacity(self) -> int:
        """Maximum number of stored transitions."""
        return self._buffer.buffer_size * self._buffer.n_envs

    def __len__(self) -> int:
        return self._buffer.size() * self._buffer.n_envs

    def state_dict(self) -> StateTree:
        """Returns the rows that are in use, and the next one if there is one.

        The next row is needed if observations and their successors share one array.
        """
        buffer = self._buffer
        rows = min(buffer.size() + 1, buffer.buffer_size)
        return {
            "arrays": {name: _rows(array, rows) for name, array in self._arrays().items()},
            "pos": buffer.pos,
            "full": buffer.full,
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the stored rows; raises ValueError if their shapes do not fit the buffer."""
        for name, array in self._arrays().items():
            _fill(array, state["arrays"][name])
        self._buffer.pos, self._buffer.full = int(state["pos"]), bool(state["full"])

    def _arrays(self) -> dict[str, Any]:
        return {
            name: getattr(self._buffer, name) for name in _ARRAYS if hasattr(self._buffer, name)
        }


def _names(model: BaseAlgorithm) -> tuple[list[str], list[str]]:
    # Each algorithm returns here the names of what its `save` writes.
    return model._get_torch_save_params()  # noqa: SLF001


def _pack_state(state: Mapping[str, Any]) -> StateTree:
    """Returns a module's state unchanged, and an optimiser's state with text as keys."""
    if "param_groups" not in state:
        return dict(state)
    groups = [
        {key: list(value) if isinstance(value, tuple) else value for key, value in group.items()}
        for group in state["param_groups"]
    ]
    return {
        "groups": groups,
        "moments": {str(index): dict(moments) for index, moments in state["state"].items()},
    }


def _unpack_state(saved: StateTree) -> StateTree:
    groups = [
        {**group, "betas": tuple(group["betas"])} if "betas" in group else group
        for group in saved["groups"]
    ]
    moments: dict[object, object] = {
        int(index): moments for index, moments in saved["moments"].items()
    }
    return {"param_groups": groups, "state": moments}


def _rows(array: Array | Mapping[str, Array], rows: int) -> object:
    return (
        {key: part[:rows] for key, part in array.items()}
        if isinstance(array, Mapping)
        else array[:rows]
    )


def _fill(array: Any, saved: Any) -> None:
    if isinstance(array, Mapping):
        for key, part in array.items():
            _fill(part, saved[key])
    elif saved.shape[1:] != array.shape[1:] or len(saved) > len(array):
        raise ValueError(
            f"a saved replay memory {list(saved.shape)} does not fit one of {list(array.shape)}"
        )
    else:
        array[: len(saved)] = saved
