"""Trains one seed of a preset in this fresh process, on one thread, and prints what came of it as one line of JSON.

python -m benchmarks._learning.one examples/learning/cartpole-dqn.yaml --seed 0
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from benchmarks._learning.presets import read_preset
from benchmarks._native import training_of
from palestra.contract.telemetry import Evaluation, RunRecord
from workers.build.assemble import build_evaluator
from workers.core.rng import derive_seed
from workers.entrypoints.jobs.native import train
from workers.evaluate.evaluator import fixed_seed

FRESH_EPISODES = 100
"""Episodes of the last evaluation; none of them decided when the training ends, so a lucky evaluation does not count."""


class Evaluations:
    """A sink that keeps evaluations."""

    def __init__(self) -> None:
        self.kept: list[Evaluation] = []

    def append(self, records: list[RunRecord]) -> int:
        self.kept += [record for record in records if isinstance(record, Evaluation)]
        return len(self.kept)

    def first_reaching(self, target: float) -> int | None:
        """Returns the env_steps of the first evaluation with at least this mean return."""
        return next((one.env_step for one in self.kept if one.mean >= target), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("preset", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    preset, sink = read_preset(options.preset), Evaluations()
    with tempfile.TemporaryDirectory(prefix="palestra-learning-") as directory:
        began = time.perf_counter()
        with training_of(preset.submission, options.seed, Path(directory), sink) as training:
            result = train(training)
        seconds = time.perf_counter() - began
    seed = derive_seed(options.seed, "episodes after the training", bits=53)
    evaluator = build_evaluator(preset.definition, training.agent, fixed_seed(seed), FRESH_EPISODES)
    final = evaluator.evaluate(training.engine.clock)
    evaluator.close()
    line = {
        "preset": preset.name,
        "seed": options.seed,
        "reason": str(result.reason),
        "final_return": round(final.mean, 2),
        "env_steps": training.engine.clock.env_steps,
        "reached_at": sink.first_reaching(preset.target),
        "seconds": round(seconds, 1),
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
