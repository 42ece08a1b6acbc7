"""Trains the presets of `examples/learning` over several seeds and shows their final returns.

    python -m benchmarks.learning [--only cartpole-dqn ...] [--seeds 5] [--jobs 2] [--write]

Seeds of an agent that can be packed are trained as one batch, other seeds one by one, each time in
a fresh process on one thread. The final return of a seed is the mean over 100 episodes after its
training, which did not influence the end of the training. The interval is that of the mean over
seeds by Student's t. A tick marks a mean that reaches the target.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks._learning.presets import FOLDER, Preset, list_preset_paths, read_preset
from benchmarks._learning.tables import HEAD, Row, write_readme
from benchmarks._report import align_columns, describe_machine
from palestra.contract.agents import PACKABLE_AGENTS

README = FOLDER / "README.md"


def train_seeds(path: Path, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Trains the given seeds; several seeds are trained as a pack.

    Raises:
        RuntimeError: If the training failed.
    """
    command = [
        sys.executable,
        "-m",
        "benchmarks._learning.train_one",
        str(path),
        "--seeds",
        ",".join(map(str, seeds)),
    ]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    finished = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if finished.returncode:
        raise RuntimeError(f"{path.stem}, seeds {list(seeds)}:\n{finished.stderr[-2_000:]}")
    return [json.loads(line) for line in finished.stdout.splitlines() if line.startswith("{")]


def train_rows(paths: list[Path], seeds: int, jobs: int) -> Iterator[Row]:
    """Yields the row of each preset as soon as its seeds are trained.

    A preset that fails is reported and left out.
    """
    with ThreadPoolExecutor(jobs) as pool:
        waiting: list[tuple[Preset, list[Future[list[dict[str, Any]]]]]] = []
        for path in paths:
            preset = read_preset(path)
            packed = preset.definition.agent.name in PACKABLE_AGENTS
            together = (
                [range(seeds)] if packed else [range(seed, seed + 1) for seed in range(seeds)]
            )
            waiting.append((preset, [pool.submit(train_seeds, path, some) for some in together]))
        for preset, futures in waiting:
            try:
                results = [result for future in futures for result in future.result()]
            except RuntimeError as error:
                print(error, file=sys.stderr)
            else:
                yield Row(preset, sorted(results, key=lambda result: result["seed"]))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="presets to train; all where this is left out"
    )
    parser.add_argument("--seeds", type=int, default=5, help="the seeds 0 to this, exclusive")
    parser.add_argument("--jobs", type=int, default=2, help="trainings at once")
    parser.add_argument(
        "--write", action="store_true", help="put the rows into examples/learning/README.md"
    )
    options = parser.parse_args()
    try:
        paths = list_preset_paths(options.only)
    except ValueError as error:
        parser.error(str(error))
    print(describe_machine())
    done = []
    for row in train_rows(paths, options.seeds, options.jobs):
        done.append(row)
        print(align_columns([HEAD, row.cells()]), flush=True)
    if not done:
        return 1
    print("\n" + align_columns([HEAD, *(row.cells() for row in done)]))
    if options.write:
        note = (
            f"{options.seeds} seeds each, `--jobs {options.jobs}`, one thread each; the "
            f"latest rows on {describe_machine()}."
        )
        write_readme(
            README, [row.cells() for row in done], [path.stem for path in list_preset_paths()], note
        )
    return 0 if len(done) == len(paths) and all(row.is_reached for row in done) else 1


if __name__ == "__main__":
    raise SystemExit(main())
