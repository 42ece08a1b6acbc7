"""Trains healthy and faulty definitions and shows what the health rules say about each.

    python -m benchmarks.health [--only cartpole-dqn ...] [--seeds 0] [--record FILE]
    python -m benchmarks.health --replay FILE

Every preset of `examples/learning` is trained as it is and must have no finding. The definitions of
`benchmarks._health.definitions.FAULTS` are presets with one fault, which one of the expected rules
must find. The thresholds of the rules were set on seeds 10 to 12; the table of
docs/decisions/0027-health-of-trainings.md and the recorded curves that the tests replay
(`tests/unit/metrics/health/trainings.json.gz`) are of seed 0. Each training runs in a process of
its own, on one thread, with all its records kept in memory; no server takes part.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from app.metrics.health import rules
from benchmarks._health.curves import from_json
from benchmarks._health.definitions import FAULTS, build_submission, list_expected, list_presets
from benchmarks._report import align_columns, describe_machine

HEAD: Final = ["definition", "fault", "seed", "env_steps", "expected", "found", ""]


def train(name: str, seed: int, buckets: int) -> dict[str, Any]:
    """Trains a definition in a fresh process; returns its curves.

    Raises:
        RuntimeError: If the training failed.
    """
    command = [sys.executable, "-m", "benchmarks._health.train_one", name, "--seed", str(seed)]
    command += ["--buckets", str(buckets)]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    finished = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **threads}, check=False
    )
    if finished.returncode:
        raise RuntimeError(f"{name}, seed {seed}:\n{finished.stderr[-2_000:]}")
    found: dict[str, Any] = json.loads(finished.stdout.strip().splitlines()[-1])
    return found


def read_recorded(path: Path) -> list[dict[str, Any]]:
    """Returns the curves of trainings that `write_recorded` stored."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def write_recorded(path: Path, trainings: Sequence[Mapping[str, Any]]) -> None:
    """Stores curves of trainings; those of other definitions or seeds in the file are kept."""
    known = read_recorded(path) if path.exists() else []
    joined = {(one["name"], one["seed"]): one for one in (*known, *trainings)}
    lines = [json.dumps(joined[key], separators=(",", ":")) for key in sorted(joined)]
    # A time or a name in the header would make each writing another file.
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())


def judge(training: Mapping[str, Any]) -> list[str]:
    """Returns the rules with a finding about recorded curves, the gravest first."""
    definition = build_submission(training["name"]).definition.model_dump(mode="json")
    return [one.rule for one in rules.find_faults(from_json(definition, training))]


def is_right(name: str, found: Sequence[str]) -> bool:
    """Returns whether the findings are right: none of a preset, an expected one of a fault."""
    return bool(list_expected(name) & set(found)) if name in FAULTS else not found


def build_row(training: Mapping[str, Any]) -> list[str]:
    """Returns the row of the table for a training."""
    name, found = training["name"], judge(training)
    return [
        name,
        FAULTS[name].what if name in FAULTS else "",
        str(training["seed"]),
        f"{training['env_steps']:,}",
        " or ".join(sorted(list_expected(name))) or "none",
        ", ".join(found) or "none",
        "✓" if is_right(name, found) else "✗",
    ]


def train_all(names: Sequence[str], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yields the curves of each training as soon as it has ended; a failed one is reported."""
    for name in names:
        for seed in options.seeds:
            try:
                found = train(name, seed, options.buckets)
            except RuntimeError as error:
                print(error, file=sys.stderr)
                continue
            if options.record is not None:
                write_recorded(options.record, [found])
            yield found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="definitions; all by default")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--buckets", type=int, default=400, help="most buckets of a curve")
    parser.add_argument("--record", type=Path, help="file to which the curves are added")
    parser.add_argument("--replay", type=Path, help="judges the curves of a file, trains nothing")
    options = parser.parse_args()
    known = [*list_presets(), *FAULTS]
    if unknown := set(options.only or []) - set(known):
        parser.error(f"no definition is called {min(unknown)}; there are {', '.join(known)}")
    names = options.only or known
    print(describe_machine())
    recorded = [] if options.replay is None else read_recorded(options.replay)
    trainings = train_all(names, options) if options.replay is None else iter(recorded)
    rows = []
    for training in trainings:
        if training["name"] in names:
            rows.append(build_row(training))
            print("  ".join(rows[-1]), flush=True)
    print("\n" + align_columns([HEAD, *rows]))
    wanted = len(rows) if options.replay else len(names) * len(options.seeds)
    return 0 if len(rows) == wanted and all(row[-1] == "✓" for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
