"""The share of one core that the server uses for a pack of 16 seeds of `dqn4` at full speed.

Server, broker and worker run as processes; the pack trains at the speed of the machine and reports
all its curves. The processor time of the server is taken over some time in which the pack trains.

    python -m benchmarks.pack_load [--seconds 30] [--seeds 16] [--compile compiled]
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import psutil

from benchmarks._peers.palestra_loop import build_submission
from benchmarks._peers.tasks import TASKS
from benchmarks._report import describe_machine, show
from tests.support.process_stack import Stack
from tests.support.waiting import wait_for

MAX_SHARE: Final = 8.0
_PERIODS: Final = 5
_START_SECONDS: Final = 300.0
_LONG: Final = 100_000_000


def read_seconds(process: psutil.Process) -> float:
    """Returns the processor time that the server has used."""
    times = process.cpu_times()
    return float(times.user + times.system)


def read_steps(stack: Stack, runs: list[dict[str, Any]]) -> int:
    """Returns the env_steps of all runs."""
    experiment = runs[0]["experiment_id"]
    found = stack.get("runs", experiment=experiment, limit=500)["items"]
    return sum(int(run["progress"]["env_step"]) for run in found)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=30, help="of training")
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--compile", choices=("eager", "compiled"), default="compiled")
    values = parser.parse_args()
    print(describe_machine())
    task = TASKS["dqn4"]
    definition = build_submission(task, _LONG, values.compile).definition.model_dump(mode="json")
    with (
        tempfile.TemporaryDirectory(prefix="plr-", dir="/tmp") as directory,
        Stack(
            Path(directory) / "data",
            slots=1,
            worker={"PALESTRA_WORKER_COMPILE": values.compile},
        ) as stack,
    ):
        resources = {"cpu_threads": 1, "compile": values.compile, "pack": values.seeds}
        runs = stack.submit(definition, seeds=list(range(values.seeds)), resources=resources)
        learns = values.seeds * 2 * task.settings.learning_starts
        wait_for(
            lambda: read_steps(stack, runs) > learns,
            "the pack learns",
            patience_seconds=_START_SECONDS,
        )
        server = psutil.Process(stack.processes["server"].pid)
        shares, began, steps = [], time.monotonic(), read_steps(stack, runs)
        for _ in range(_PERIODS):
            start, used = time.monotonic(), read_seconds(server)
            time.sleep(values.seconds / _PERIODS)
            shares.append(100 * (read_seconds(server) - used) / (time.monotonic() - start))
        rate = (read_steps(stack, runs) - steps) / (time.monotonic() - began)
        points = sum(
            one["points"]
            for run in runs
            for one in stack.get(f"runs/{run['id']}/series", limit=200)["items"]
        )
    print(f"{values.seeds} seeds as one pack: {rate:,.0f} env_steps a second, {points:,} points")
    return 0 if show("server, share of one core", shares, "%", bound=MAX_SHARE) else 1


if __name__ == "__main__":
    raise SystemExit(main())
