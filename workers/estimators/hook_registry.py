"""Creates hooks by name, for documents that define an experiment."""

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
from workers.supervised.named_parts import find_part
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
"""Hook classes by class name."""


def make_hook(name: Any, params: Mapping[str, object]) -> SessionRunHook:
    """Creates a hook of the class `name` with keyword arguments.

    Raises:
        PartNotFoundError: If there is no hook with this name.
        ValueError: If the arguments do not fit the class.
    """
    make = find_part(name, HOOKS, "hook")
    try:
        return make(**params)
    except TypeError as error:
        raise ValueError(f"hook {name}: {error}") from error


def make_hooks(specs: Iterable[tuple[object, Mapping[str, object]]]) -> list[SessionRunHook]:
    """Creates one hook per pair of name and keyword arguments; see `make_hook`."""
    return [make_hook(name, params) for name, params in specs]
