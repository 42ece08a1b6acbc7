"""Hooks by name, for definitions that are data."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from workers.estimators.basic_hooks import (
    FinalOpsHook,
    GlobalStepWaiterHook,
    NanTensorHook,
    StopAfterNEvalsHook,
)
from workers.estimators.counter_hooks import (
    EpisodeCheckpointSaverHook,
    EpisodeCounterHook,
    EpisodeLoggingTensorHook,
    EpisodeSummarySaverHook,
    StepCheckpointSaverHook,
    StepCounterHook,
    StepLoggingTensorHook,
    StepSummarySaverHook,
    StopAtEpisodeHook,
    StopAtStepHook,
)
from workers.supervised.named_parts import part_called
from workers.supervised.run_session import SessionRunHook

HOOKS: Final[Mapping[str, Callable[..., SessionRunHook]]] = {
    hook.__name__: hook
    for hook in (
        GlobalStepWaiterHook,
        FinalOpsHook,
        StopAfterNEvalsHook,
        NanTensorHook,
        StepLoggingTensorHook,
        StopAtStepHook,
        StepCheckpointSaverHook,
        StepCounterHook,
        StepSummarySaverHook,
        EpisodeLoggingTensorHook,
        StopAtEpisodeHook,
        EpisodeSummarySaverHook,
        EpisodeCheckpointSaverHook,
        EpisodeCounterHook,
    )
}
"""The hooks by the name of their class."""


def make_hook(name: Any, params: Mapping[str, object]) -> SessionRunHook:
    """Returns a hook of a name, with keyword arguments.

    Raises:
        PartNotFoundError: If no hook is called so.
        ValueError: If its arguments are wrong.
    """
    make = part_called(name, HOOKS, "hook")
    try:
        return make(**params)
    except TypeError as error:
        raise ValueError(f"hook {name}: {error}") from error


def make_hooks(specs: Iterable[tuple[object, Mapping[str, object]]]) -> list[SessionRunHook]:
    """Returns the hooks of pairs of name and arguments."""
    return [make_hook(name, params) for name, params in specs]
