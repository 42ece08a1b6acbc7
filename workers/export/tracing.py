"""A module as a `torch.export` program."""

import inspect
from typing import Any

import torch


def trace_module(
    module: torch.nn.Module, example: tuple[torch.Tensor, ...]
) -> torch.export.ExportedProgram:
    """Returns the program of a module whose inputs are all [N, ...], with a dynamic N.

    Args:
        module: On the CPU, in eval mode.
        example: One tensor per input, with N of at least 2.
    """
    rows = torch.export.Dim("N")
    shapes: Any = tuple({0: rows} for _ in example)
    parameters = inspect.signature(module.forward).parameters.values()
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        shapes = (shapes,)
    # A traced program cannot hold the gradient switch that models of `workers.estimators` set
    # inside their call.
    with torch.no_grad():
        return torch.export.export(module, example, dynamic_shapes=shapes)
