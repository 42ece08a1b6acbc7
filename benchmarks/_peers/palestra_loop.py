"""Palestra as a peer of the others: a definition, trained by the parts of a worker's trainer, which write their telemetry to a spool."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from benchmarks._native import training_of
from benchmarks._peers.loops import Done, Loop, NotTrainedHereError
from benchmarks._peers.tasks import A2cSettings, DqnSettings, PpoSettings, SacSettings, Settings, Task
from palestra.contract.options import Submission
from palestra.telemetry.spool import SpoolWriter
from workers.build.assemble import Training
from workers.core.errors import PartNotFoundError
from workers.loop.clock import Clock


def build(task: Task, seed: int, env_steps: int) -> Loop:
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="palestra-training-")))
        spool = stack.enter_context(SpoolWriter(directory / "spool"))
        try:
            training = stack.enter_context(training_of(submission(task, env_steps), seed, directory, spool))
        except ValidationError as error:
            raise NotTrainedHereError("; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:3])) from error
        except PartNotFoundError as error:
            raise NotTrainedHereError(str(error)) from error
        opened = stack.pop_all()
    return Loop(lambda: train(training, env_steps), lambda observation: act(training, observation), opened.close)


def train(training: Training, env_steps: int) -> Done:
    """Trains up to `env_steps`, without the evaluation and the snapshot with which a run ends: the others make none."""
    ticks, clock = training.engine.ticks(), training.engine.clock
    first, second = learning_tick_seconds(ticks, clock), learning_tick_seconds(ticks, clock)
    for _ in ticks:
        if clock.env_steps >= env_steps:
            break
    return Done(clock.env_steps, max(0.0, first - second))


def learning_tick_seconds(ticks: Iterator[Clock], clock: Clock) -> float:
    """Returns how long the next iteration took that learnt something."""
    learnt, began = clock.updates, time.perf_counter()
    for _ in ticks:
        now = time.perf_counter()
        if clock.updates > learnt:
            return now - began
        began = now
    return 0.0


def act(training: Training, observation: np.ndarray) -> Any:
    with training.agent.eval_mode():
        action = training.agent.act(observation[None], explore=False)[0]
    return action if action.ndim else int(action)


def submission(task: Task, env_steps: int) -> Submission:
    """Returns what a user would submit for a task; evaluations and snapshots during the training are off."""
    settings = task.settings
    return Submission.model_validate(
        {
            "definition": {
                "kind": "rl",
                "name": task.title,
                "env": {"id": task.env, "num_envs": getattr(settings, "num_envs", 1)},
                "agent": agent_of(settings),
                "loop": {"env_steps": env_steps},
                "evaluation": {"every_env_steps": None, "episodes": 1},
                "snapshot": {"every_env_steps": None},
            }
        }
    )


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
            return {
                "name": "a2c",
                "learning_rate": settings.learning_rate,
                "rmsprop_decay": settings.rms_decay,
                "rmsprop_epsilon": settings.rms_epsilon,
                "gamma": settings.gamma,
                "rollout_steps": settings.rollout,
                "value_coefficient": settings.value,
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
