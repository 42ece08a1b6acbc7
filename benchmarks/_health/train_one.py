"""Trains one definition in this process, on one thread; prints its curves as a line of JSON.

python -m benchmarks._health.train_one dqn-step-size --seed 0
"""

import argparse
import contextlib
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks._health import environments
from benchmarks._health.curves import read_training, to_json
from benchmarks._health.definitions import build_submission
from benchmarks._train_in_process import open_training
from palestra.contract.telemetry import RunRecord
from workers.core.errors import NumericalFailureError
from workers.trainer_process.schedules.native import train


class RecordSink:
    """A sink that keeps all records."""

    def __init__(self) -> None:
        self.kept: list[RunRecord] = []

    def append(self, records: list[RunRecord]) -> int:
        self.kept += records
        return len(self.kept)


def train_definition(name: str, seed: int, env_steps: int | None, buckets: int) -> dict[str, Any]:
    """Trains a definition; returns its curves and how it ended."""
    environments.register()
    submission, began = build_submission(name, env_steps), time.perf_counter()
    sink, reason = RecordSink(), "diverged"
    with (
        tempfile.TemporaryDirectory(prefix="palestra-health-") as directory,
        open_training(submission, seed, Path(directory), sink) as training,
    ):
        with contextlib.suppress(NumericalFailureError):
            reason = str(train(training).reason)
        training.recorder.close()
    definition = submission.definition.model_dump(mode="json")
    return {
        "name": name,
        "seed": seed,
        "reason": reason,
        "seconds": round(time.perf_counter() - began, 1),
        "budget": definition["loop"]["env_steps"],
        **to_json(read_training(definition, sink.kept, buckets)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", help="a preset or a faulty definition")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--env-steps", type=int, help="shorter than the definition")
    parser.add_argument("--buckets", type=int, default=400, help="most buckets of a series")
    options = parser.parse_args()
    line = train_definition(options.name, options.seed, options.env_steps, options.buckets)
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
