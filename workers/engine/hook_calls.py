"""Hooks grouped by method, so that a method that no hook overrides is never called."""

from collections.abc import Callable, Sequence
from typing import Any

from workers.core.protocols import EngineView, Hook, Stateful
from workers.core.types import EpisodeEnd, EvaluationResult, LearnReport, StateTree, StopReason


class HookCalls:
    """The overridden methods of hooks by event, in the hooks' order.

    Args:
        hooks: Called in this order at each event.
    """

    def __init__(self, hooks: Sequence[Hook]) -> None:
        self._hooks = tuple(hooks)
        self.on_start: tuple[Callable[[EngineView], None], ...] = self._methods("on_start")
        self.on_tick: tuple[Callable[[EngineView, Sequence[LearnReport]], None], ...] = (
            self._methods("on_tick")
        )
        self.on_episode: tuple[Callable[[EngineView, EpisodeEnd], None], ...] = self._methods(
            "on_episode"
        )
        self.on_evaluation: tuple[Callable[[EngineView, EvaluationResult], None], ...] = (
            self._methods("on_evaluation")
        )
        self.on_snapshot: tuple[Callable[[EngineView, str], None], ...] = self._methods(
            "on_snapshot"
        )
        self.on_finish: tuple[Callable[[EngineView, StopReason], None], ...] = self._methods(
            "on_finish"
        )

    def state(self) -> list[StateTree | None]:
        """Returns the state of each hook; `None` for a hook without state."""
        return [hook.state_dict() if isinstance(hook, Stateful) else None for hook in self._hooks]

    def load_state(self, states: Sequence[StateTree | None]) -> None:
        """Restores the state of each hook."""
        for hook, state in zip(self._hooks, states, strict=True):
            if state is not None and isinstance(hook, Stateful):
                hook.load_state_dict(state)

    def _methods(self, name: str) -> tuple[Any, ...]:
        return tuple(
            method for hook in self._hooks if (method := getattr(hook, name, None)) is not None
        )
