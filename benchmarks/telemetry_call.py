"""One call of the recorder from the loop, while its thread writes into a real spool.

python -m benchmarks.telemetry_call [--calls 200000]
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks._report import describe_machine, show
from palestra.contract.names import new_id
from palestra.telemetry.spool import SpoolWriter
from workers.core.types import EpisodeEnd, LearnReport
from workers.engine.clock import Clock
from workers.recording.recorder import RecordedRun, SpoolRecorder

LOSS = LearnReport(1, torch.zeros(3))
EPISODE = EpisodeEnd(0, 0, 200.0, 200, terminated=True)


def measure(calls: int, call: Callable[[int], None], pause: float) -> list[float]:
    """Returns the microseconds of each call.

    Consecutive calls are a training iteration's time apart.
    """
    values = []
    for index in range(calls):
        started = time.perf_counter_ns()
        call(index)
        values.append((time.perf_counter_ns() - started) / 1e3)
        until = time.perf_counter() + pause
        while time.perf_counter() < until:
            pass
    return values


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=50_000)
    parser.add_argument(
        "--pause", type=float, default=150e-6, help="seconds of other work between two calls"
    )
    options = parser.parse_args()
    print(describe_machine())
    clock = Clock(time.monotonic)
    with tempfile.TemporaryDirectory() as directory, SpoolWriter(Path(directory)) as spool:
        run = RecordedRun(
            new_id("run"),
            ("loss/td", "q/mean", "gradient/norm"),
            lambda: {"explore/epsilon": 0.1},
            100,
        )
        recorder = SpoolRecorder(run, spool)
        recorder.start()

        def tick(index: int) -> None:
            clock.env_steps = clock.updates = index
            recorder.record_iteration(clock, [(index, EPISODE)] if index % 200 == 0 else (), [LOSS])

        ticks = measure(options.calls, tick, options.pause)
        points = measure(
            options.calls,
            lambda index: recorder.record_point(clock, "user/value", float(index)),
            options.pause,
        )
        recorder.close()
    good = show("recorder.tick, one learn report each", ticks, "µs", bound=20, at=0.99)
    show("recorder.tick, half of the calls", ticks, "µs")
    good = show("recorder.point", points, "µs", bound=20, at=0.99) and good
    show("recorder.point, half of the calls", points, "µs")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
