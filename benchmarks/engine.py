"""The engine alone, per iteration: loop, clock, triggers and absent hooks; agent, collector and recorder faked.

python -m benchmarks.engine [--iterations 200000] [--repeat 7]
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

from benchmarks._report import machine, show
from tests.support.trainer_fakes import (
    FLAGS,
    NOTHING,
    FakeAgent,
    FakeCollector,
    FakeControl,
    FakeEvaluator,
    FakeRecorder,
    FakeSnapshotter,
    cadence,
)
from workers.core.types import CollectPlan, Experience, LearnReport, LearnSchedule, Unit
from workers.loop.engine import Engine
from workers.loop.parts import Parts

REPORT = LearnReport(1, (0.0,))
EXPERIENCE = Experience(NOTHING, NOTHING, FLAGS, FLAGS, FLAGS, NOTHING, (), env_steps=1)


def quiet(value: Any) -> Callable[..., Any]:
    """Returns a function that does nothing and answers `value`."""
    return lambda *_, **__: value


def engine(iterations: int, *, learns: bool) -> Engine:
    """Returns an engine whose parts cost one call each."""
    trace: list[Any] = []
    schedule = LearnSchedule(every_env_steps=1, updates=1, warmup_env_steps=0 if learns else iterations + 1)
    agent, collector, recorder = FakeAgent(trace, CollectPlan(vector_steps=1), schedule), FakeCollector(trace), FakeRecorder(trace)
    agent.observe, agent.learn = quiet(None), quiet(REPORT)  # type: ignore[method-assign]
    collector.collect, recorder.tick = quiet(EXPERIENCE), quiet(None)  # type: ignore[method-assign]
    control = FakeControl(trace)
    parts = Parts(
        agent=agent,
        collector=collector,
        recorder=recorder,
        snapshotter=FakeSnapshotter(trace),
        control=control,
        evaluator=FakeEvaluator(trace),
    )
    options = {"epoch": 1_000, "evaluation": 10 * iterations, "snapshot": 10 * iterations}
    return Engine(parts, cadence({Unit.ENV_STEPS: iterations}, **options), time.monotonic)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=200_000)
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    print(machine())
    good = True
    for name, learns in (("engine alone, collect and learn", True), ("engine alone, collect only", False)):
        values = []
        for _ in range(options.repeat):
            built = engine(options.iterations, learns=learns)
            started = time.perf_counter()
            built.run()
            values.append((time.perf_counter() - started) / options.iterations * 1e6)
        good = show(name, values, "µs", bound=5) and good
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
