"""The tensors of an agent that several processes train together.

They are found among its attributes, moved to shared memory, and adopted by the other processes.

torch is not imported: if it is not loaded yet, the agent has no tensors to share.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

SharedTensors = dict[str, Any]
"""Shared tensors by name of the attribute.

For a module the value is a dictionary of parameters and buffers by name, for an optimiser a list
with the state of each parameter in order, for a tensor the tensor.
"""


def share(agent: object) -> SharedTensors:
    """Moves the agent's shared tensors to shared memory and returns them.

    The agent's tensors remain the same objects.

    Args:
        agent: Its attribute `shared_attributes` has the names of the attributes to share; without
            it, all torch modules, optimisers and tensors among the attributes are shared.

    Raises:
        TypeError: If `shared_attributes` names an attribute that is missing or cannot be shared.
        ValueError: If a tensor is not on the CPU.
    """
    return {name: _share_value(name, value) for name, value in _parts(agent)}


def adopt(agent: object, shared: SharedTensors) -> None:
    """Replaces the agent's tensors by those that another process shared.

    Then calls the agent's `sync_parameters`, if it has this method.

    Args:
        agent: An agent built with the same networks and optimisers as the one that was shared.
        shared: What `share` returned.

    Raises:
        ValueError: If the shapes or numbers of tensors differ.
    """
    for name, tensors in shared.items():
        _take_over(name, getattr(agent, name, None), tensors)
    sync = getattr(agent, "sync_parameters", None)
    if shared and callable(sync):
        sync()


def _parts(agent: object) -> Iterator[tuple[str, object]]:
    torch = sys.modules.get("torch")
    if torch is None:
        return
    kinds = (torch.nn.Module, torch.optim.Optimizer, torch.Tensor)
    named = getattr(agent, "shared_attributes", None)
    if named is None:
        yield from (
            (name, value) for name, value in vars(agent).items() if isinstance(value, kinds)
        )
        return
    for name in named:
        value = getattr(agent, name, None)
        if not isinstance(value, kinds):
            message = (
                f"agent: shared_attributes names {name!r}, a {type(value).__name__}: only modules, "
                "optimisers and tensors can be"
            )
            raise TypeError(message)
        yield name, value


def _share_value(name: str, value: Any) -> object:
    if hasattr(value, "param_groups"):
        return [_share_state(value.state.get(parameter, {})) for parameter in _parameters(value)]
    if hasattr(value, "named_parameters"):
        value.share_memory()
        return {key: tensor.detach() for key, tensor in _named_tensors(value)}
    if value.device.type != "cpu":
        raise ValueError(
            f"agent: {name} is on {value.device}: processes share memory of the CPU only"
        )
    value.share_memory_()
    return value.detach()


def _share_state(state: Mapping[str, object]) -> dict[str, Any]:
    for value in state.values():
        if hasattr(value, "share_memory_"):
            value.share_memory_()
    return dict(state)


def _take_over(name: str, own: Any, shared: Any) -> None:
    if isinstance(shared, list):
        parameters = _parameters(own) if hasattr(own, "param_groups") else []
        if len(parameters) != len(shared):
            raise ValueError(_mismatch_message(name))
        for parameter, state in zip(parameters, shared, strict=True):
            own.state[parameter].update(state)
        return
    targets = dict(_named_tensors(own)) if isinstance(shared, dict) else {"": own}
    sources = shared if isinstance(shared, dict) else {"": shared}
    if {key: _shape(tensor) for key, tensor in targets.items()} != {
        key: _shape(tensor) for key, tensor in sources.items()
    }:
        raise ValueError(_mismatch_message(name))
    for key, tensor in targets.items():
        tensor.data = sources[key]


def _named_tensors(module: Any) -> Iterator[tuple[str, Any]]:
    if hasattr(module, "named_parameters"):
        yield from module.named_parameters()
        yield from module.named_buffers()


def _parameters(optimizer: Any) -> list[Any]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _shape(tensor: Any) -> object:
    return (tuple(tensor.shape), tensor.dtype) if hasattr(tensor, "shape") else None


def _mismatch_message(name: str) -> str:
    return (
        f"make_agent: {name} is not the same in every process: build the same networks and "
        "optimisers whatever process_idx is"
    )
