"""The session of a training or an evaluation, through which hooks read values and make requests.

A *run* is one pass of the model around which hooks are called: an update, an evaluated batch or
episode, or an empty run that closes an episode at whose end no update was made. Steps of an agent
between two updates are not runs.
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
    """Number of the episode since the model was created, from 1."""
    length: int
    """Length in env_steps."""
    total_reward: float
    """Undiscounted sum of the rewards."""
    mean_reward: float
    max_reward: float
    min_reward: float
    updates: int
    """Updates made since the previous episode ended."""
    loss: float | None
    """Loss of the last of these updates; `None` if none was made."""
    epsilon: float | None
    """Exploration rate after the last action; `None` for a model without exploration."""
    seconds: float
    """Duration, including updates."""


@dataclass(frozen=True, slots=True)
class RunValues:
    """The values that a run computed."""

    results: Mapping[str, Any] = field(default_factory=dict)
    """Loss, metrics, predictions and extra ops of the spec, by name."""
    scalars: Mapping[str, Any] = field(default_factory=dict)
    """Loss and metrics only, one number each."""
    loss: Tensor | None = None
    """The loss; `None` if the run computed none."""
    episode: EpisodeRecord | None = None
    """The episode that this run closes; `None` if it closes none."""
    has_learned: bool = False
    """Whether an update was made."""


class RunContext:
    """The argument of hooks around a run, through which they can request a stop.

    Args:
        session: The session of the run.
    """

    __slots__ = ("session",)

    def __init__(self, session: "RunSession") -> None:
        self.session = session

    @property
    def stop_requested(self) -> bool:
        """Whether a stop was requested."""
        return self.session.should_stop()

    def request_stop(self, reason: StopReason = StopReason.REQUESTED) -> None:
        """Ends training or evaluation after this run."""
        self.session.request_stop(reason)


class SessionRunHook:
    """Base class of hooks that are called around the runs of a training or an evaluation.

    Override the methods that you need; see `workers.estimators.counter_hooks` for existing hooks.

    If a hook has `state_dict` and `load_state_dict`, checkpoints contain its state.
    """

    def begin(self) -> None:
        """Called once, when the session is created."""

    def after_create_session(self, session: "RunSession", coord: object = None) -> None:
        """Called once, after counters and variables were restored from the newest checkpoint."""

    def before_run(self, run_context: RunContext) -> None:
        """Called before each run."""

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        """Called after each run; the counters include the run."""

    def end(self, session: "RunSession") -> None:
        """Called once after training or evaluation ended without an exception.

        The last checkpoint is written afterwards.
        """


class RunSession:
    """Makes the runs of one training or evaluation and calls the hooks around them.

    Args:
        variables: The variables of the model.
        hooks: Hooks, called in this order.
        model_dir: Directory of the checkpoints.
        now: Clock that returns monotonic time in seconds.

    Raises:
        TypeError: If a hook is not a `SessionRunHook`.
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
        self.is_checkpoint_requested = False
        self.checkpoint: Path | None = None
        """The newest checkpoint that this training wrote; `None` before the first."""
        self.stop_reason: StopReason | None = None
        self._context = RunContext(self)
        for hook in self.hooks:
            hook.begin()

    @property
    def global_step(self) -> int:
        """Updates made since the model was created."""
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
        """Makes one run by calling `op`, and calls the hooks before and after it."""
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
        """Ends training or evaluation after the present run; the first request's reason counts."""
        self.stop_reason = self.stop_reason or reason

    def should_stop(self) -> bool:
        """Returns whether a stop was requested."""
        return self.stop_reason is not None

    def request_checkpoint(self) -> None:
        """Requests a checkpoint after the present run; without effect in an evaluation."""
        self.is_checkpoint_requested = True

    def note_checkpoint(self, checkpoint: Path) -> None:
        """Records a checkpoint that was written as the newest one."""
        self.checkpoint = checkpoint

    def state_dict(self) -> StateTree:
        """Returns the state of each hook that has one."""
        return {key: hook.state_dict() for key, hook in self._stateful_hooks().items()}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the hooks' states; hooks without a saved state keep their initial state."""
        for key, hook in self._stateful_hooks().items():
            if key in state:
                hook.load_state_dict(state[key])

    def _stateful_hooks(self) -> dict[str, Any]:
        """Returns the hooks that have a state by key: class name and number within the class."""
        found: dict[str, Any] = {}
        for hook in self.hooks:
            if hasattr(hook, "state_dict") and hasattr(hook, "load_state_dict"):
                name = type(hook).__name__
                found[f"{name}_{sum(key.rpartition('_')[0] == name for key in found)}"] = hook
        return found


def check_hooks(hooks: Sequence[SessionRunHook] | None) -> tuple[SessionRunHook, ...]:
    """Returns the hooks as a tuple.

    Raises:
        TypeError: If a hook is not a `SessionRunHook`.
    """
    for hook in hooks or ():
        if not isinstance(hook, SessionRunHook):
            raise TypeError(
                f"hooks: {hook!r} is no SessionRunHook: "
                "derive it from workers.supervised.run_session.SessionRunHook"
            )
    return tuple(hooks or ())
