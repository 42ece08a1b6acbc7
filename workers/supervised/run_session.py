"""The interface of a training or an evaluation to its hooks: runs, counters, requests.

A *run* is one pass of the model that hooks may look at: an update, an evaluated batch or episode,
or the empty run that closes an episode at whose end there was nothing to learn. Steps of an agent
between two updates are no runs.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from torch import Tensor

from workers.core.types import StateTree, StopReason
from workers.supervised.variables import Variables


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """Statistics of one episode of training."""

    episode: int
    """Number of the episode in the life of the model, from 1."""
    length: int
    """env_steps."""
    total_reward: float
    """Undiscounted sum."""
    mean_reward: float
    max_reward: float
    min_reward: float
    updates: int
    """Updates made since the episode before it ended."""
    loss: float | None
    """The last one of those; `None` where there was none."""
    epsilon: float | None
    """Exploration rate behind its last action; `None` for a model without exploration."""
    seconds: float
    """How long it took, learning included."""


@dataclass(frozen=True, slots=True)
class RunValues:
    """What a run computed."""

    results: Mapping[str, Any] = field(default_factory=dict)
    """Loss, metrics, predictions and extra ops of the spec, by name."""
    scalars: Mapping[str, Any] = field(default_factory=dict)
    """Loss and metrics alone, one number each."""
    loss: Tensor | None = None
    """`None` where nothing was learnt or evaluated."""
    episode: EpisodeRecord | None = None
    """The episode that this run closes."""
    learned: bool = False
    """Whether an update was made."""


class RunContext:
    """What a hook may do around one run.

    Args:
        session: The session.
    """

    __slots__ = ("session",)

    def __init__(self, session: "RunSession") -> None:
        self.session = session

    @property
    def stop_requested(self) -> bool:
        """Whether a hook asked to stop."""
        return self.session.should_stop()

    def request_stop(self, reason: StopReason = StopReason.REQUESTED) -> None:
        """Ends training or evaluation behind this run."""
        self.session.request_stop(reason)


class SessionRunHook:
    """Looks at the runs of a training or an evaluation.

    Override what you need; see `workers.estimators.counter_hooks` for those that exist.

    A hook with `state_dict` and `load_state_dict` has its state saved with the checkpoints.
    """

    def begin(self) -> None:
        """Called once, before anything is made."""

    def after_create_session(self, session: "RunSession", coord: object = None) -> None:
        """Called once, when counters and variables are those of the newest checkpoint."""

    def before_run(self, run_context: RunContext) -> None:
        """Called before each run."""

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        """Called after each run; the counters include it."""

    def end(self, session: "RunSession") -> None:
        """Called once after training or evaluation ended without an exception.

        The last checkpoint is written afterwards.
        """


class RunSession:
    """The runs of one training or evaluation.

    Args:
        variables: Of the model.
        hooks: Called in this order.
        model_dir: Where checkpoints lie.
        now: Monotonic seconds.

    Raises:
        TypeError: If something that is not a `SessionRunHook` is among the hooks.
    """

    def __init__(
        self,
        variables: Variables,
        hooks: Sequence[SessionRunHook],
        model_dir: str,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.variables: Final = variables
        self.model_dir: Final = model_dir
        self.now: Final = now
        self.hooks: Final = check_hooks(hooks)
        self.checkpoint_requested = False
        self.checkpoint: Path | None = None
        """The newest one that this training wrote."""
        self.stop_reason: StopReason | None = None
        self._context = RunContext(self)
        for hook in self.hooks:
            hook.begin()

    @property
    def global_step(self) -> int:
        """Updates made in the life of the model."""
        return self.variables.global_step

    @property
    def global_timestep(self) -> int:
        """Actions taken in training."""
        return self.variables.global_timestep

    @property
    def global_episode(self) -> int:
        """Training episodes finished."""
        return self.variables.global_episode

    def start(self) -> None:
        """Calls the hooks once counters and variables are restored."""
        for hook in self.hooks:
            hook.after_create_session(self)

    def run(self, op: Callable[[], RunValues]) -> RunValues:
        """Makes one run, with the hooks around it."""
        context = self._context
        for hook in self.hooks:
            hook.before_run(context)
        values = op()
        for hook in self.hooks:
            hook.after_run(context, values)
        return values

    def end(self) -> None:
        """Calls the hooks at the end of training or evaluation."""
        for hook in self.hooks:
            hook.end(self)

    def request_stop(self, reason: StopReason = StopReason.REQUESTED) -> None:
        """Ends training or evaluation behind the running run; the first reason wins."""
        self.stop_reason = self.stop_reason or reason

    def should_stop(self) -> bool:
        """Returns whether a stop was requested."""
        return self.stop_reason is not None

    def request_checkpoint(self) -> None:
        """Makes a checkpoint due behind the running run; without effect in an evaluation."""
        self.checkpoint_requested = True

    def note_checkpoint(self, checkpoint: Path) -> None:
        """Remembers a checkpoint that was written."""
        self.checkpoint = checkpoint

    def state_dict(self) -> StateTree:
        """Returns the state of those hooks that have one."""
        return {key: hook.state_dict() for key, hook in self._stateful().items()}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the state of the hooks; one that was not there when it was saved begins anew."""
        for key, hook in self._stateful().items():
            if key in state:
                hook.load_state_dict(state[key])

    def _stateful(self) -> dict[str, Any]:
        """Returns hooks with a state by class and number."""
        found: dict[str, Any] = {}
        for hook in self.hooks:
            if hasattr(hook, "state_dict") and hasattr(hook, "load_state_dict"):
                name = type(hook).__name__
                found[f"{name}_{sum(key.rpartition('_')[0] == name for key in found)}"] = hook
        return found


def check_hooks(hooks: Sequence[SessionRunHook] | None) -> tuple[SessionRunHook, ...]:
    """Returns the hooks as a tuple.

    Raises:
        TypeError: If something else is among them.
    """
    for hook in hooks or ():
        if not isinstance(hook, SessionRunHook):
            raise TypeError(
                f"hooks: {hook!r} is no SessionRunHook: "
                "derive it from workers.supervised.run_session.SessionRunHook"
            )
    return tuple(hooks or ())
