"""Runs updates eagerly or compiled; an update is written once, for either kind of gradient."""

import functools
from collections.abc import Callable, Collection
from typing import Any, Final

import torch
from torch import Tensor

from palestra.contract.names import CompileMode
from workers.acceleration.compiled_update import CompiledFunction, StateBuffers
from workers.acceleration.library_cache import identity_of
from workers.acceleration.nested_tensors import map_tensors

ROWS_WORTH_STACKING: Final = 3
"""Without compilation, fewer updates than this run faster one after the other than with `vmap`."""

Aside = tuple[Tensor, ...]
"""Auxiliary outputs of a loss, which are not differentiated."""

Loss = Callable[[Tensor], tuple[Tensor, Aside]]
"""Parameters float32 [P] -> (loss [], aside)."""

Gradient = Callable[[Loss, Tensor], tuple[Tensor, Tensor, Aside]]
"""(loss, parameters) -> (gradient [P], loss [], aside)."""


def functional_gradient(loss: Loss, parameters: Tensor) -> tuple[Tensor, Tensor, Aside]:
    """Returns gradient [P], loss [] and auxiliary outputs, computed by `torch.func`.

    With this gradient an update can be compiled and used with `vmap`.
    """
    gradient, (value, aside) = torch.func.grad_and_value(loss, has_aux=True)(parameters)
    return gradient, value, aside


def eager_gradient(loss: Loss, parameters: Tensor) -> tuple[Tensor, Tensor, Aside]:
    """Returns gradient [P], loss [] and auxiliary outputs, computed by autograd's tape.

    Without compilation, it takes about two thirds of the time of `torch.func` for the same values.
    """
    with torch.enable_grad():
        leaf = parameters.detach().requires_grad_()
        value, aside = loss(leaf)
    (gradient,) = torch.autograd.grad(value, leaf)
    return gradient, value.detach(), tuple(one.detach() for one in aside)


def make_runner(
    update: Callable[..., object], *, mode: CompileMode, buffers: StateBuffers | None = None
) -> Callable[..., Any]:
    """Returns `update(gradient, ...)` as a function of the remaining arguments.

    It runs in one of the three modes; `buffers` as in `CompiledFunction`.
    """

    def run_eagerly(*arguments: object) -> Any:
        with torch.no_grad():
            return update(eager_gradient, *arguments)

    def run_update(*arguments: object) -> object:
        return update(functional_gradient, *arguments)

    if mode == "eager":
        return run_eagerly
    return CompiledFunction(
        run_update,
        fallback=run_eagerly,
        like=run_eagerly,
        identity=identity_of(update),
        uses_cudagraph=mode == "cudagraph",
        buffers=buffers,
    )


def make_sized_runner(
    update: Callable[..., object], *, mode: CompileMode, sizes: Collection[int]
) -> Callable[[Any, Any], Any]:
    """Returns `update(gradient, state, batch)` as a function of state and batch.

    Batches whose number of rows is in `sizes` run in `mode`, the others eagerly: compiling for a
    size that occurs once would take longer than the update.
    """
    usual = make_runner(update, mode=mode, buffers=StateBuffers())
    unusual = make_runner(update, mode="eager")

    def run(state: object, batch: object) -> Any:
        return (usual if rows_of(batch) in sizes else unusual)(state, batch)

    return run


def make_stacked_runner(
    update: Callable[..., object], *, mode: CompileMode, buffers: StateBuffers | None = None
) -> Callable[[Any, Any], Any]:
    """Returns `update(gradient, state, batch)` as a function of n states and n batches.

    They are stacked along a new first dimension.
    """
    together = torch.func.vmap(functools.partial(update, functional_gradient))
    single = make_runner(update, mode="eager")

    def run_row(row: int, *arguments: object) -> Any:
        return single(*(map_tensors(lambda leaf: leaf[row], argument) for argument in arguments))

    def run_eagerly(state: object, batch: object) -> Any:
        rows = rows_of(state)
        if rows < ROWS_WORTH_STACKING:
            return map_tensors(
                lambda *leaves: torch.stack(leaves),
                *(run_row(row, state, batch) for row in range(rows)),
            )
        with torch.no_grad():
            return together(state, batch)

    if mode == "eager":
        return run_eagerly
    identity, like = identity_of(update), functools.partial(run_row, 0)
    named = identity and f"stacked {identity}"
    return CompiledFunction(
        together,
        fallback=run_eagerly,
        like=like,
        identity=named,
        uses_cudagraph=mode == "cudagraph",
        buffers=buffers,
    )


def rows_of(stack: Any) -> int:
    """Returns how many rows the tensors of a nested tuple have, [n, ...] each."""
    while not isinstance(stack, Tensor):
        stack = stack[0]
    return len(stack)
