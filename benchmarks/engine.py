"""The engine, per iteration: loop, clock, triggers and absent hooks.

Agent, collector and recorder are fakes. Further cases have the clock, bounds, hooks and recorders
of each entry point, and the adapter of external agents.

python -m benchmarks.engine [--iterations 200000] [--repeat 7]
"""

import argparse
import logging
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._report import describe_machine, show
from tests.support.pfrl_agents import ScriptedBatch
from tests.support.trainer_fakes import (
    FLAGS,
    NOTHING,
    FakeAgent,
    FakeCollector,
    FakeControl,
    FakeEvaluator,
    FakeRecorder,
    FakeSnapshotter,
    make_cadence,
)
from workers.core.types import CollectPlan, Experience, LearnReport, LearnSchedule, Unit
from workers.engine.engine import Engine
from workers.engine.parts import Parts
from workers.entrypoints.async_training.process_parts import ProcessControl
from workers.entrypoints.async_training.shared_block import SharedBlock
from workers.entrypoints.async_training.shared_parts import (
    EndOfRun,
    SharedBestScore,
    SharedBudget,
    SharedClock,
    SharedIntervalTrigger,
)
from workers.entrypoints.functional_parts.episodes_csv import EpisodesFile
from workers.entrypoints.functional_parts.evaluation_records import EpisodeCount, EvaluationRecorder
from workers.entrypoints.functional_parts.interrupts import Interrupts
from workers.entrypoints.functional_parts.log_recorder import LogRecorder
from workers.entrypoints.functional_parts.recorder_group import RecorderGroup
from workers.entrypoints.trainer_parts.engine_parts import (
    EpochBounds,
    KeptEpochTrigger,
    LeavingHook,
)
from workers.estimators.training_services import ModelBudget, Services
from workers.hooks.evaluation_hooks import SuccessScoreHook
from workers.hooks.step_hooks import StepHooks
from workers.rl.agents.pfrl_adapter import ExternalAgent
from workers.supervised.learner import SessionHook
from workers.supervised.run_session import RunSession
from workers.supervised.variables import Variables

REPORT = LearnReport(1, (0.0,))
EXPERIENCE = Experience(NOTHING, NOTHING, FLAGS, FLAGS, FLAGS, NOTHING, (), env_steps=1)


def build_constant_function(value: Any) -> Callable[..., Any]:
    """Returns a function that does nothing and returns `value`."""
    return lambda *_, **__: value


def build_engine(
    iterations: int,
    *,
    learns: bool,
    around: dict[str, Any] | None = None,
    when: dict[str, Any] | None = None,
) -> Engine:
    """Returns an engine with fake parts that cost one call each, except those in `around`.

    `when` replaces fields of its cadence.
    """
    trace: list[Any] = []
    schedule = LearnSchedule(
        every_env_steps=1, updates=1, warmup_env_steps=0 if learns else iterations + 1
    )
    agent, collector, recorder = (
        FakeAgent(trace, CollectPlan(vector_steps=1), schedule),
        FakeCollector(trace),
        FakeRecorder(trace),
    )
    agent.observe, agent.learn = build_constant_function(None), build_constant_function(REPORT)  # type: ignore[method-assign]
    collector.collect, recorder.record_iteration = (
        build_constant_function(EXPERIENCE),
        build_constant_function(None),
    )  # type: ignore[method-assign]
    usual = {"recorder": recorder, "control": FakeControl(trace)}
    parts = Parts(
        agent=agent,
        collector=collector,
        snapshotter=FakeSnapshotter(trace),
        evaluator=FakeEvaluator(trace),
        **{**usual, **(around or {})},
    )
    options = {"epoch": 1_000, "evaluation": 10 * iterations, "snapshot": 10 * iterations}
    return Engine(
        parts,
        replace(make_cadence({Unit.ENV_STEPS: iterations}, **options), **(when or {})),
        time.monotonic,
    )


LoopCase = Callable[[int], Callable[[], object]]
"""Takes a number of iterations and returns a function that runs them."""


def build_engine_case(*, learns: bool) -> LoopCase:
    """Returns a `LoopCase` of the engine by itself."""
    return lambda iterations: build_engine(iterations, learns=learns).run


def build_training_function_case(file: EpisodesFile) -> LoopCase:
    """Returns a `LoopCase` of the engine in `train_agent_with_evaluation`, with one step hook."""
    return lambda iterations: (
        build_engine(iterations, learns=False, around=build_functional_parts(file)).run
    )


def build_training_process(iterations: int) -> Callable[[], object]:
    """Returns a function that runs `iterations` in one process of `train_agent_async`.

    Its clock, budget, best score and evaluations are the shared ones.
    """
    block = SharedBlock(1)
    end = EndOfRun(block, 0)
    clock = SharedClock(time.monotonic, block, iterations)
    budget = SharedBudget(iterations, clock, block, end)
    around = {
        "clock": clock,
        "best": SharedBestScore(block),
        "control": ProcessControl(end, budget, clock, None),
        "hooks": (StepHooks(None, None, [build_constant_function(None)], 1),),
    }
    when = {
        "budget": budget,
        "evaluation": SharedIntervalTrigger(10 * iterations, clock, iterations),
    }
    return build_engine(iterations, learns=False, around=around, when=when).run


def build_trainer_case(iterations: int) -> Callable[[], object]:
    """Returns a `LoopCase` of `Trainer.advance` within one epoch."""
    bounds = EpochBounds()
    bounds.epochs = 1
    kept = KeptEpochTrigger(lambda _: False)
    built = build_engine(
        iterations,
        learns=True,
        around={"hooks": (LeavingHook(),)},
        when={"budget": bounds, "epoch": None, "snapshot": kept},
    )

    def run() -> None:
        for _ in built.epochs(1):
            built.advance(iterations)

    return run


def build_estimator_case(iterations: int) -> Callable[[], object]:
    """Returns a `LoopCase` of `Estimator.train` and `Agent.train`, whose session has no hooks."""
    session = RunSession(Variables(0, "cpu"), (), "")
    services = Services()
    around = {
        "hooks": (SessionHook(session),),
        "recorder": services.recorder,
        "control": services.control,
    }
    return build_engine(
        iterations,
        learns=True,
        around=around,
        when={"budget": ModelBudget(iterations), "epoch": None},
    ).run


def build_functional_parts(file: EpisodesFile) -> dict[str, Any]:
    """Returns the parts around the engine in `train_agent_with_evaluation`, with one step hook."""
    episodes = EpisodeCount(None)
    log = LogRecorder(logging.getLogger(__name__), "", list, interval=10**9)
    members = {
        "episodes": file,
        "log": log,
        "evaluations": EvaluationRecorder(list, episodes, None),
    }
    hooks = (
        episodes,
        StepHooks(None, None, [build_constant_function(None)], 1),
        SuccessScoreHook(None),
    )
    return {
        "hooks": hooks,
        "recorder": RecorderGroup(members),
        "control": Interrupts(10**9, time.monotonic),
    }


def build_adapter_function(num_envs: int, *, batch: bool) -> Callable[[], None]:
    """Returns a function that makes the calls of one iteration to the adapter of an idle agent."""
    inner = ScriptedBatch()
    for name in ("act", "observe", "batch_observe"):
        setattr(inner, name, build_constant_function(0))
    inner.batch_act = build_constant_function([0] * num_envs)  # type: ignore[method-assign]
    agent = ExternalAgent(inner, num_envs=num_envs, is_batch=batch)
    rows, flags = np.zeros((1, num_envs, 4), np.float32), np.zeros((1, num_envs), np.bool_)
    experience = Experience(
        rows, flags, np.zeros((1, num_envs)), flags, flags, rows, (), env_steps=num_envs
    )

    def iterate() -> None:
        agent.act(rows[0], explore=True)
        agent.observe(experience)

    return iterate


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=200_000)
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    print(describe_machine())
    good = True
    with tempfile.TemporaryDirectory() as directory:
        episodes = EpisodesFile(Path(directory) / "episodes.csv", 0)
        faces: dict[str, LoopCase] = {
            "engine alone, collect and learn": build_engine_case(learns=True),
            "engine alone, collect only": build_engine_case(learns=False),
            "engine within a training function": build_training_function_case(episodes),
            "engine within a process of train_agent_async": build_training_process,
            "engine within a Trainer": build_trainer_case,
            "engine within an Estimator or Agent": build_estimator_case,
        }
        for name, face in faces.items():
            values = []
            for _ in range(options.repeat):
                run = face(options.iterations)
                started = time.perf_counter()
                run()
                values.append((time.perf_counter() - started) / options.iterations * 1e6)
            good = show(name, values, "µs", bound=5) and good
        episodes.close()
    for name, num_envs, batch in (
        ("adapter of a foreign agent", 1, False),
        ("adapter of a foreign agent, 8 environments", 8, True),
    ):
        iterate, values = build_adapter_function(num_envs, batch=batch), []
        for _ in range(options.repeat):
            started = time.perf_counter()
            for _ in range(options.iterations):
                iterate()
            values.append((time.perf_counter() - started) / options.iterations * 1e6)
        good = show(name, values, "µs", bound=15) and good
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
