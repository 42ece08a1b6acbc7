"""Trains the presets of `examples/learning` over several seeds and shows what each reaches.

    python -m benchmarks.learning [--only cartpole-dqn ...] [--seeds 5] [--jobs 2] [--write]

Every seed is trained in a fresh process on one thread. The final return of a seed is the mean over 100 episodes after the training, none of
which had a part in ending it; the interval is that of the mean over seeds by Student's t. A tick says that the mean reaches the target.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks._learning.presets import FOLDER, preset_paths, read_preset
from benchmarks._learning.tables import HEAD, Row, write_readme
from benchmarks._report import aligned, machine

README = FOLDER / "README.md"


def trained(path: Path, seed: int) -> dict[str, Any]:
    """Trains one seed.

    Raises:
        RuntimeError: If the training failed.
    """
    command = [sys.executable, "-m", "benchmarks._learning.one", str(path), "--seed", str(seed)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    finished = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if finished.returncode:
        raise RuntimeError(f"{path.stem}, seed {seed}:\n{finished.stderr[-2_000:]}")
    result: dict[str, Any] = json.loads(finished.stdout.strip().splitlines()[-1])
    return result


def rows(paths: list[Path], seeds: int, jobs: int) -> Iterator[Row]:
    """Yields each preset as soon as its seeds are trained; a preset that fails is told of and left out."""
    with ThreadPoolExecutor(jobs) as pool:
        waiting: list[tuple[Path, list[Future[dict[str, Any]]]]] = [
            (path, [pool.submit(trained, path, seed) for seed in range(seeds)]) for path in paths
        ]
        for path, futures in waiting:
            try:
                yield Row(read_preset(path), [future.result() for future in futures])
            except RuntimeError as error:
                print(error, file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="presets to train; all where this is left out")
    parser.add_argument("--seeds", type=int, default=5, help="the seeds 0 to this, exclusive")
    parser.add_argument("--jobs", type=int, default=2, help="trainings at once")
    parser.add_argument("--write", action="store_true", help="put the rows into examples/learning/README.md")
    options = parser.parse_args()
    try:
        paths = preset_paths(options.only)
    except ValueError as error:
        parser.error(str(error))
    print(machine())
    done = []
    for row in rows(paths, options.seeds, options.jobs):
        done.append(row)
        print(aligned([HEAD, row.cells()]), flush=True)
    if not done:
        return 1
    print("\n" + aligned([HEAD, *(row.cells() for row in done)]))
    if options.write:
        note = f"{options.seeds} seeds each, {options.jobs} trainings at once, one thread each; the latest rows on {machine()}."
        write_readme(README, [row.cells() for row in done], [path.stem for path in preset_paths()], note)
    return 0 if len(done) == len(paths) and all(row.reached for row in done) else 1


if __name__ == "__main__":
    raise SystemExit(main())
