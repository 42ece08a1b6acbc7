"""Two ways to one gradient: the mathematics of an update is written once and run by either."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from workers.agents.compiled import Compiled
from workers.core.types import CompileMode

Aside = tuple[Tensor, ...]
"""What a loss computes on the way; not differentiated."""

Loss = Callable[[Tensor], tuple[Tensor, Aside]]
"""Parameters float32 [P] -> (loss [], aside)."""

Gradient = Callable[[Loss, Tensor], tuple[Tensor, Tensor, Aside]]
"""(loss, parameters) -> (gradient [P], loss [], aside)."""


def functional_gradient(loss: Loss, parameters: Tensor) -> tuple[Tensor, Tensor, Aside]:
    """Differentiates by `torch.func`: can be compiled whole and stacked by `vmap`."""
    gradient, (value, aside) = torch.func.grad_and_value(loss, has_aux=True)(parameters)
    return gradient, value, aside


def eager_gradient(loss: Loss, parameters: Tensor) -> tuple[Tensor, Tensor, Aside]:
    """Differentiates by the tape: the same numbers in about two thirds of the time where nothing is compiled."""
    with torch.enable_grad():
        leaf = parameters.detach().requires_grad_()
        value, aside = loss(leaf)
    (gradient,) = torch.autograd.grad(value, leaf)
    return gradient, value.detach(), tuple(one.detach() for one in aside)


def runnable(update: Callable[..., Any], *, mode: CompileMode) -> Callable[..., Any]:
    """Returns `update(gradient, ...)` as a function of the remaining arguments, run in one of the three ways."""

    def eagerly(*arguments: Any) -> Any:
        with torch.no_grad():
            return update(eager_gradient, *arguments)

    def whole(*arguments: Any) -> Any:
        return update(functional_gradient, *arguments)

    return eagerly if mode == "eager" else Compiled(whole, eagerly, cudagraph=mode == "cudagraph")


def stacked(update: Callable[..., Any], *, mode: CompileMode) -> Callable[[Any, Any], Any]:
    """Returns `update(gradient, state, batch)` as a function of n states and n batches, stacked along a new first dimension."""
    together = torch.func.vmap(functools.partial(update, functional_gradient))

    def eagerly(*arguments: Any) -> Any:
        with torch.no_grad():
            return together(*arguments)

    return eagerly if mode == "eager" else Compiled(together, eagerly, cudagraph=mode == "cudagraph")
