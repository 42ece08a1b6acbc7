"""Two ways to one gradient, and the compiler: the mathematics of an update is written once and run by either."""

import functools
from collections.abc import Callable
from typing import Any

import structlog
import torch
from torch import Tensor

from workers.core.types import CompileMode

Aside = tuple[Tensor, ...]
"""What a loss computes on the way; not differentiated."""

Loss = Callable[[Tensor], tuple[Tensor, Aside]]
"""Parameters float32 [P] -> (loss [], aside)."""

Gradient = Callable[[Loss, Tensor], tuple[Tensor, Tensor, Aside]]
"""(loss, parameters) -> (gradient [P], loss [], aside)."""

_log = structlog.get_logger()


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


class Compiled:
    """A pure function that is compiled at its first call, and runs as it stands where this machine cannot compile.

    The fallback is safe because nothing has happened before the failure: a pure function has no effects.

    Args:
        function: What to compile.
        fallback: The same mathematics for machines without a compiler.
        cudagraph: Replay the kernels as one CUDA graph.
    """

    def __init__(self, function: Callable[..., Any], fallback: Callable[..., Any], *, cudagraph: bool = False) -> None:
        # Tells the compiler too, where the process asked for determinism before the compiler was there.
        torch.use_deterministic_algorithms(
            torch.are_deterministic_algorithms_enabled(), warn_only=torch.is_deterministic_algorithms_warn_only_enabled()
        )
        self._function = torch.compile(function, fullgraph=True, dynamic=False, mode="reduce-overhead" if cudagraph else None)
        self._fallback = fallback
        self._proven = False

    def __call__(self, *arguments: Any) -> Any:
        if self._proven:
            return self._function(*arguments)
        try:
            result = self._function(*arguments)
        except Exception as error:  # noqa: BLE001 - a missing or broken compiler shows in many ways
            _log.warning("agent.compile_failed", error=f"{type(error).__name__}: {error}"[:500])
            self._function = self._fallback
            result = self._fallback(*arguments)
        self._proven = True
        return result


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
