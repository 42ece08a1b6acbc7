"""Trains once in this process, on one thread, and prints the measurements as a line of JSON.

python -m benchmarks._peers.runner --peer sb3 --task dqn1 --seeds 0
"""

import argparse
import contextlib
import importlib
import json
import logging
import os
import sys
import time
import warnings

from benchmarks._peers.tasks import TASKS
from palestra.contract.names import TRAINER_SIMULATOR

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
"""Environment variables that the numeric libraries read when they are loaded."""

MODULES = {
    "palestra": "benchmarks._peers.palestra_loop",
    "sb3": "benchmarks._peers.sb3_loop",
    "pfrl": "benchmarks._peers.pfrl_loop",
    "tianshou": "benchmarks._peers.tianshou_loop",
    "plain": "benchmarks._peers.plain_loops",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", choices=sorted(MODULES), required=True)
    parser.add_argument("--task", choices=sorted(TASKS), required=True)
    parser.add_argument(
        "--seeds",
        default="0",
        help="separated by commas; several are a pack, which is Palestra's alone",
    )
    parser.add_argument("--compile", default="eager", help="how Palestra runs its updates")
    parser.add_argument(
        "--simulator", default="auto", help="whose code Palestra computes the environment with"
    )
    parser.add_argument(
        "--label", help="what the line says of who trained; the peer's name where it is left out"
    )
    parser.add_argument("--env-steps", type=int, help="shorter or longer than the task")
    parser.add_argument(
        "--started",
        type=float,
        default=None,
        help="when this process was started, in seconds since the epoch",
    )
    options = parser.parse_args()
    if options.peer not in {"palestra", *TASKS[options.task].peers}:
        parser.error(f"{options.peer} does not train {options.task}")
    started = options.started or time.time()
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    os.environ[TRAINER_SIMULATOR] = options.simulator
    print(json.dumps(measure(options, started)))


def measure(options: argparse.Namespace, started: float) -> dict[str, object]:
    import torch

    torch.set_num_threads(1)
    task, label = TASKS[options.task], options.label or options.peer
    env_steps = options.env_steps or task.env_steps
    with contextlib.redirect_stdout(sys.stderr), _silence_libraries():
        module = importlib.import_module(MODULES[options.peer])
        from benchmarks._peers.loops import (
            UnsupportedAlgorithmError,
            measure_children_seconds,
            measure_greedy_return,
            measure_processor_seconds,
            read_peak_mib,
        )

        try:
            seeds = [int(seed) for seed in options.seeds.split(",")]
            extra = (
                (seeds, env_steps, options.compile)
                if options.peer == "palestra"
                else (seeds[0], env_steps)
            )
            loop = module.build(task, *extra)
        except UnsupportedAlgorithmError as error:
            return {"peer": label, "task": task.name, "left_out": str(error)}
        setup = time.time() - started
        began, began_cpu = (
            time.perf_counter(),
            measure_processor_seconds() + measure_children_seconds(),
        )
        done = loop.train()
        seconds, cpu_seconds = (
            time.perf_counter() - began,
            measure_processor_seconds() + measure_children_seconds() - began_cpu,
        )
        ended = time.time()
        peak = read_peak_mib() + done.children_mib
        returns = (
            [round(measure_greedy_return(task.env, act), 1) for act in (loop.act, *loop.others)]
            if task.is_return_reported
            else []
        )
        loop.close()
    trained = seconds - done.warm_up_seconds
    return {
        "peer": label,
        "task": task.name,
        "seeds": options.seeds,
        "env_steps": done.env_steps,
        "env_steps_per_second": round(done.env_steps / trained, 1),
        "setup_seconds": round(setup, 2),
        "warm_up_seconds": round(done.warm_up_seconds, 2),
        "loop_seconds": round(trained, 3),
        "ended": round(ended, 3),
        "env_steps_per_cpu_second": round(
            done.env_steps / max(cpu_seconds - done.warm_up_processor_seconds, 1e-9), 1
        ),
        "together_per_second": round(done.env_steps / (setup + seconds), 1),
        "peak_mib": round(peak),
        "mean_return": round(sum(returns) / len(returns), 1) if returns else None,
        "returns": returns,
        "torch_threads": torch.get_num_threads(),
    }


@contextlib.contextmanager
def _silence_libraries():
    """Silences warnings and logs of the other libraries, which would hide the measurements."""
    logging.disable(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


if __name__ == "__main__":
    main()
