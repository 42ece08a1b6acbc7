"""Arguments of a `train_agent_async` call, and the checks of these arguments."""

import logging
import multiprocessing
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import synchronize
from typing import Any, Final

from workers.core.counts import check_count
from workers.entrypoints.async_training.messages import AsyncSettings, UserParts
from workers.entrypoints.async_training.spawn_pickling import check_picklable, pickling_error
from workers.hooks.evaluation_hooks import check_support
from workers.hooks.step_hooks import check_step_hooks

FUNCTION: Final = "train_agent_async"


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncCall:
    """The arguments of one call of `train_agent_async`."""

    settings: AsyncSettings
    user: UserParts
    processes: int
    success_threshold: float
    step_offset: int
    tensorboard: bool
    logger: logging.Logger
    random_seeds: Sequence[int] | None
    exception_event: Any
    shares_tensors: bool
    resume: str | None
    start_method: str


def check_call(call: AsyncCall) -> None:
    """Raises ValueError or TypeError for an invalid argument, before any process is started."""
    if call.user.agent is None and call.user.make_agent is None:
        raise ValueError("give agent or make_agent: there is nothing to train")
    for name, value, least in (
        ("processes", call.processes, 1),
        ("steps", call.settings.steps, 0),
        ("step_offset", call.step_offset, 0),
        ("max_episode_len", call.settings.max_episode_len, 1),
    ):
        if value is not None:
            check_count(value, name, least)
    if call.start_method not in multiprocessing.get_all_start_methods():
        raise ValueError(
            f"start_method must be one of {multiprocessing.get_all_start_methods()}, "
            f"not {call.start_method!r}"
        )
    for name, function in (("make_env", call.user.make_env), ("make_agent", call.user.make_agent)):
        if function is not None and not callable(function):
            raise TypeError(f"{name}: a {type(function).__name__} cannot be called")
    check_step_hooks(call.user.step_hooks, "global_step_hooks")
    check_support(call.user.evaluation_hooks, "train_agent_async", FUNCTION)


def seeds_of(call: AsyncCall) -> list[int]:
    """Returns one seed per process; without `random_seeds` they are 0, 1, 2, ..."""
    seeds = (
        list(range(call.processes))
        if call.random_seeds is None
        else [int(seed) for seed in call.random_seeds]
    )
    if len(seeds) != call.processes:
        raise ValueError(
            f"random_seeds holds {len(seeds)} seeds for {call.processes} processes: "
            "give one for each"
        )
    if min(seeds) < 0:
        raise ValueError(f"random_seeds must be at least 0, not {min(seeds)}")
    return seeds


def can_send_stop_event(call: AsyncCall) -> bool:
    """Returns whether `stop_event` can be sent to the processes.

    If not, for example for an event of `threading`, the caller's process polls it.
    """
    event = call.user.stop_event
    return isinstance(event, synchronize.Event) and (
        call.start_method == "fork" or pickling_error(event) is None
    )


def check_user_parts(call: AsyncCall, user: UserParts) -> None:
    """Raises TypeError if a part in `user` cannot be pickled for a new process."""
    if call.start_method == "fork":
        return
    check_picklable("make_env", user.make_env)
    check_picklable("make_agent", user.make_agent)
    check_picklable(
        "agent", user.agent, "give make_agent, a function of a module, instead of or beside agent"
    )
    for name, hooks in (
        ("global_step_hooks", user.step_hooks),
        ("evaluation_hooks", user.evaluation_hooks),
    ):
        for hook in hooks:
            check_picklable(name, hook)
    check_picklable("the agent's shared tensors", user.tensors)
