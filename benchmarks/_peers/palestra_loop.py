"""Trains with Palestra: a definition, the parts of a worker's trainer, and a telemetry spool."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from benchmarks._peers.loops import (
    Loop,
    Measurements,
    UnsupportedAlgorithmError,
    measure_children_mib,
    measure_processor_seconds,
)
from benchmarks._peers.tasks import (
    A2cSettings,
    A3cSettings,
    AtariSettings,
    DqnSettings,
    PpoSettings,
    SacSettings,
    Settings,
    Task,
)
from benchmarks._train_in_process import build_bare_submission, open_pack, open_training
from palestra.contract.job_options import Submission
from palestra.telemetry.spool import SpoolWriter
from workers.assembly.training import Training
from workers.core.errors import PartNotFoundError
from workers.engine.clock import Clock
from workers.recording.recorder import SharedSink


def build(task: Task, seeds: Sequence[int], env_steps: int, compile_mode: str) -> Loop:
    with ExitStack() as stack:
        directory = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="palestra-training-"))
        )
        spool = stack.enter_context(SpoolWriter(directory / "spool"))
        try:
            submitted = build_submission(task, env_steps, compile_mode)
            if len(seeds) > 1:
                trainings = stack.enter_context(
                    open_pack(submitted, seeds, directory, [SharedSink(spool)] * len(seeds))
                ).trainings
            else:
                trainings = [
                    stack.enter_context(open_training(submitted, seeds[0], directory, spool))
                ]
        except ValidationError as error:
            raise UnsupportedAlgorithmError(
                "; ".join(
                    f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:3]
                )
            ) from error
        except PartNotFoundError as error:
            raise UnsupportedAlgorithmError(str(error)) from error
        opened = stack.pop_all()
    first, *others = (partial(act, training) for training in trainings)
    return Loop(lambda: train(trainings, env_steps), first, opened.close, tuple(others))


def train(trainings: list[Training], env_steps: int) -> Measurements:
    """Runs each training up to `env_steps`, without the evaluation and snapshot at its end.

    The other libraries make neither an evaluation nor a snapshot.
    """
    turns, clocks = run_in_turn(trainings), [training.engine.clock for training in trainings]
    first, second = (
        measure_learning_turn(turns, clocks[-1]),
        measure_learning_turn(turns, clocks[-1]),
    )
    for _ in turns:
        if clocks[-1].env_steps >= env_steps:
            break
    seconds, processor_seconds = (
        max(0.0, one - other) for one, other in zip(first, second, strict=True)
    )
    env_steps_done = sum(clock.env_steps for clock in clocks)
    return Measurements(env_steps_done, seconds, processor_seconds, measure_children_mib())


def run_in_turn(trainings: list[Training]) -> Iterator[None]:
    """Runs one iteration of each training in turn, and yields after each round."""
    ticks = [training.engine.ticks() for training in trainings]
    while True:
        for each in ticks:
            if next(each, None) is None:
                return
        yield


def measure_learning_turn(turns: Iterator[None], clock: Clock) -> tuple[float, float]:
    """Returns the wall time and the processor time of the next turn in which an agent learned."""
    learnt, began = clock.updates, _now()
    for _ in turns:
        now = _now()
        if clock.updates > learnt:
            return now[0] - began[0], now[1] - began[1]
        began = now
    return 0.0, 0.0


def _now() -> tuple[float, float]:
    return time.perf_counter(), measure_processor_seconds()


def act(training: Training, observation: np.ndarray) -> Any:
    with training.agent.eval_mode():
        action = training.agent.act(observation[None], explore=False)[0]
    return action if action.ndim else int(action)


def build_submission(task: Task, env_steps: int, compile_mode: str) -> Submission:
    """Returns the submission for a task, as a user would write it."""
    settings = task.settings
    return build_bare_submission(
        task.title,
        {"id": task.env, **env_of(settings)},
        agent_of(settings),
        env_steps,
        compile=compile_mode,
    )


def env_of(settings: Settings) -> dict[str, Any]:
    match settings:
        case AtariSettings():
            return {"preprocessing": {}, "kwargs": {"repeat_action_probability": 0.0}}
        case A3cSettings():
            return {}
        case _:
            return {"num_envs": getattr(settings, "num_envs", 1)}


def agent_of(settings: Settings) -> dict[str, Any]:
    match settings:
        case DqnSettings():
            return {
                "name": "dqn",
                "learning_rate": settings.learning_rate,
                "gamma": settings.gamma,
                "batch_size": settings.batch,
                "buffer_size": settings.buffer,
                "learning_starts": settings.learning_starts,
                "train_every": settings.train_every,
                "target_update_every": settings.target_every,
                "double": False,
                "epsilon_start": settings.epsilon_start,
                "epsilon_end": settings.epsilon_end,
                "epsilon_decay_steps": settings.epsilon_steps,
                "max_grad_norm": None,
                "hidden_sizes": settings.hidden,
            }
        case PpoSettings():
            return {
                "name": "ppo",
                "learning_rate": settings.learning_rate,
                "gamma": settings.gamma,
                "gae_lambda": settings.gae_lambda,
                "rollout_steps": settings.rollout,
                "passes": settings.passes,
                "minibatch_size": settings.minibatch,
                "clip_range": settings.clip_range,
                "value_coefficient": settings.value,
                "entropy_coefficient": settings.entropy,
                "max_grad_norm": settings.max_grad_norm,
                "hidden_sizes": settings.hidden,
            }
        case A2cSettings():
            asynchronous = isinstance(settings, A3cSettings)
            return {
                **(
                    {"name": "a3c", "processes": settings.num_envs}
                    if asynchronous
                    else {"name": "a2c"}
                ),
                "learning_rate": settings.learning_rate,
                "rmsprop_decay": settings.rms_decay,
                "rmsprop_epsilon": settings.rms_epsilon,
                "gamma": settings.gamma,
                "rollout_steps": settings.rollout,
                "value_coefficient": settings.value / 2
                if asynchronous
                else settings.value,  # PFRL's A3C halves the squared error
                "entropy_coefficient": settings.entropy,
                "max_grad_norm": settings.max_grad_norm,
                "hidden_sizes": settings.hidden,
            }
        case SacSettings():
            return {
                "name": "sac",
                "learning_rate": settings.learning_rate,
                "gamma": settings.gamma,
                "batch_size": settings.batch,
                "buffer_size": settings.buffer,
                "learning_starts": settings.learning_starts,
                "tau": settings.tau,
                "hidden_sizes": settings.hidden,
            }
