"""Trains seeds of a preset in this process, on one thread; prints a line of JSON for each.

python -m benchmarks._learning.train_one examples/learning/cartpole-dqn.yaml --seeds 0,1,2
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from benchmarks._learning.presets import read_preset
from benchmarks._train_in_process import (
    EvaluationSink,
    evaluate_from_seed,
    open_pack,
    open_training,
)
from workers.assembly.training import Training
from workers.core.rng import derive_seed
from workers.trainer_process.schedules.native import train, train_pack

FRESH_EPISODES = 100
"""Episodes of the last evaluation.

They do not influence when the training ends, so a lucky evaluation does not count.
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("preset", type=Path)
    parser.add_argument(
        "--seeds",
        type=lambda text: [int(seed) for seed in text.split(",")],
        default=[0],
        help="several train as a pack",
    )
    options = parser.parse_args()
    preset, began = read_preset(options.preset), time.perf_counter()
    sinks = [EvaluationSink() for _ in options.seeds]

    def tell(index: int, training: Training) -> None:
        clock, seconds = training.engine.clock, time.perf_counter() - began
        seed = derive_seed(options.seeds[index], "episodes after the training", bits=53)
        final = evaluate_from_seed(training, preset.definition, seed, FRESH_EPISODES)
        line = {
            "preset": preset.name,
            "seed": options.seeds[index],
            "reason": str(training.engine.result.reason),
            "final_return": round(final, 2),
            "env_steps": clock.env_steps,
            "reached_at": sinks[index].env_steps_to_reach(preset.target),
            "seconds": round(seconds, 1),
        }
        print(json.dumps(line), flush=True)

    with tempfile.TemporaryDirectory(prefix="palestra-learning-") as directory:
        if len(options.seeds) > 1:
            with open_pack(preset.submission, options.seeds, Path(directory), sinks) as pack:
                train_pack(pack, lambda index: tell(index, pack.trainings[index]))
        else:
            with open_training(
                preset.submission, options.seeds[0], Path(directory), sinks[0]
            ) as training:
                train(training)
                tell(0, training)


if __name__ == "__main__":
    main()
