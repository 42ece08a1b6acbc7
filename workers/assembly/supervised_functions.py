"""Looks up model and input functions by their names.

A separate module, so that reinforcement learning does not import the estimators.
"""

from typing import cast

from palestra.contract.estimators import INPUT_FUNCTIONS, MODEL_FUNCTIONS
from workers.assembly.registry import registered_part
from workers.supervised.inputs import NamedInput, input_function
from workers.supervised.model_function import ModelFn
from workers.supervised.models import model_function


def named_model(name: str) -> ModelFn:
    """Returns the model function of a name, built-in or registered by a distribution.

    Raises:
        PartNotFoundError: If there is none, or it cannot be imported.
    """
    return (
        model_function(name)
        if name in MODEL_FUNCTIONS
        else cast("ModelFn", registered_part("model_functions", name).load())
    )


def named_input(name: str) -> NamedInput:
    """Returns the input function of a name, like `named_model`."""
    return (
        input_function(name)
        if name in INPUT_FUNCTIONS
        else cast("NamedInput", registered_part("input_functions", name).load())
    )
