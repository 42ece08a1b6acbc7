"""The learning state of an agent, which an update replaces.

It is a named tuple of tensors, or of such named tuples.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from workers.core.types import StateTree
from workers.rl.agents.common.optimizers import AdamState, RmspropState
from workers.rl.networks.parameter_layout import Layout

S = TypeVar("S")

Layouts = Mapping[str, Layout]
"""Layout of each field of a state that is a vector of parameters, by the field's name."""


def learning_rates(state: Any) -> list[Tensor]:
    """Returns the step size of each of a state's optimisers, in order."""
    if isinstance(state, AdamState | RmspropState):
        return [state.learning_rate]
    return (
        []
        if isinstance(state, Tensor)
        else [rate for field in state for rate in learning_rates(field)]
    )


def replace_learning_rates(state: S, rates: Iterator[Tensor]) -> S:
    """Returns the state with its optimisers' step sizes replaced by `rates`, in order."""
    if isinstance(state, AdamState | RmspropState):
        return cast("S", state._replace(learning_rate=next(rates)))
    if isinstance(state, Tensor):
        return state
    result: S = type(state)(*(replace_learning_rates(field, rates) for field in state))  # type: ignore[attr-defined]
    return result


def state_tree(state: Any, layouts: Layouts) -> StateTree:
    """Returns the state as a tree for a snapshot.

    Vectors of parameters become tensors by name; other fields are stored by their names.
    """
    return {name: _tree(getattr(state, name), layouts.get(name)) for name in state._fields}


def load_state(template: S, tree: StateTree, layouts: Layouts) -> S:
    """Returns the state stored in `tree`.

    Args:
        template: A state of the same agent; its tensors have the devices of the result.
        tree: What `state_tree` returned.
        layouts: Layout of each vector of parameters.

    Raises:
        ValueError: If `tree` is of another agent or another network.
    """
    names: tuple[str, ...] = template._fields  # type: ignore[attr-defined]
    if tree.keys() != set(names):
        raise ValueError(
            f"the stored state is of another agent: it holds {sorted(tree)}, not {sorted(names)}"
        )
    loaded: S = type(template)(
        *(_load_field(getattr(template, name), tree[name], layouts.get(name)) for name in names)
    )
    return loaded


def _tree(field: object, layout: Layout | None) -> object:
    if not isinstance(field, Tensor):
        return state_tree(field, {})
    return (
        field.clone()
        if layout is None
        else {name: part.clone() for name, part in layout.split(field).items()}
    )


def _load_field(template: Any, stored: Any, layout: Layout | None) -> object:
    if not isinstance(template, Tensor):
        return load_state(template, stored, {})
    value = torch.as_tensor(stored) if layout is None else layout.join(stored)
    if value.shape != template.shape:
        raise ValueError(
            f"a stored tensor of shape {tuple(value.shape)} does not fit one of shape "
            f"{tuple(template.shape)}"
        )
    return value.to(template.device, template.dtype, copy=True)
