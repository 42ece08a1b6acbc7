"""Seconds that compiled updates cost and milliseconds that they save, for each kind of agent.

    python -m benchmarks.compilation [--agents dqn,ppo] [--repeat 3] [--write]

Each training has one thread and a process of its own: without compilation, compiled with no code
on disk, and compiled with the code of that one on disk, in turn. Agents have their default
parameters but for a smaller `learning_starts`. `--write` writes the medians to
`workers/assembly/update_costs.json`, by which `resources.compile: auto` decides. Run it beside
nothing else: only the quotient of the two counts, and it differs little between machines.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

from benchmarks._report import align_columns, describe_machine
from benchmarks._train_in_process import build_bare_submission, open_training
from palestra.telemetry.spool import SpoolWriter
from workers.acceleration.library_cache import CODE_VARIABLE
from workers.assembly.compile_mode import UpdateCost

TABLE: Final = Path(__file__).parents[1] / "workers" / "assembly" / "update_costs.json"
FIRST_UPDATES: Final = 64
"""Updates after which each kind of update has been compiled."""
WINDOWS: Final = 9
WINDOW_SECONDS: Final = 0.5
NEVER: Final = 10**9

_CARTPOLE: Final[dict[str, Any]] = {"id": "CartPole-v1"}
_PENDULUM: Final[dict[str, Any]] = {"id": "Pendulum-v1"}
_PONG: Final[dict[str, Any]] = {"id": "ALE/Pong-v5", "preprocessing": {}}
_REPLAY: Final[dict[str, Any]] = {"learning_starts": 256}


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of update: an agent and the kind of its observations."""

    agent: str
    kind: str
    env: Mapping[str, Any]
    parameters: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name for the command line."""
        return f"{self.agent}/{self.kind}"


def list_cases() -> list[Case]:
    """Returns all kinds of updates that are compiled."""
    replay = ("dqn", "c51", "iqn", "qr_dqn", "rainbow")
    vectors = [Case(agent, "vector", _CARTPOLE, _REPLAY) for agent in (*replay, "drqn")]
    vectors += [Case(agent, "vector", _CARTPOLE, {}) for agent in ("ppo", "a2c", "a3c")]
    vectors += [
        Case(agent, "vector", _PENDULUM, _REPLAY) for agent in ("ddpg", "td3", "sac", "naf")
    ]
    small = {**_REPLAY, "buffer_size": 10_000}
    images = [Case(agent, "image", _PONG, small) for agent in replay]
    images += [Case(agent, "image", _PONG, {}) for agent in ("ppo", "a2c")]
    return vectors + images


def train(case: Case, mode: str) -> tuple[float, float]:
    """Returns the seconds of the first updates, and the milliseconds of a later one.

    Both include the env_steps between two updates.
    """
    agent = {"name": case.agent, **case.parameters}
    submission = build_bare_submission(case.agent, dict(case.env), agent, NEVER, compile=mode)
    with (
        tempfile.TemporaryDirectory() as directory,
        SpoolWriter(Path(directory, "spool")) as spool,
        open_training(submission, 0, Path(directory), spool) as training,
    ):
        clock, turns = training.engine.clock, training.engine.ticks()
        while clock.updates == 0:
            began = time.perf_counter()
            next(turns)
        while clock.updates < FIRST_UPDATES:
            next(turns)
        first, first_updates = time.perf_counter() - began, clock.updates
        milliseconds = statistics.median(_measure_window(turns, clock) for _ in range(WINDOWS))
    return first - first_updates * milliseconds / 1_000, milliseconds


def _measure_window(turns: Iterator[object], clock: Any) -> float:
    began, updates = time.perf_counter(), clock.updates
    while (now := time.perf_counter()) - began < WINDOW_SECONDS or clock.updates == updates:
        next(turns)
    return (now - began) / (clock.updates - updates) * 1_000


def measure(case: Case, mode: str, code: Path) -> tuple[float, float]:
    """Trains in a process of its own, whose compiled code is in the directory `code`."""
    command = [sys.executable, "-m", "benchmarks.compilation", "--train", case.name, mode]
    answer = subprocess.run(
        command, env={**os.environ, CODE_VARIABLE: str(code)}, stdout=subprocess.PIPE, check=True
    )
    first, milliseconds = json.loads(answer.stdout.splitlines()[-1])
    return first, milliseconds


def measure_cost(case: Case, repeat: int) -> UpdateCost:
    """Returns the medians of a kind of update."""
    rounds = []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as code:
            _, eager = measure(case, "eager", Path(code))
            cold, _ = measure(case, "compiled", Path(code))
            stored, compiled = measure(case, "compiled", Path(code))
        rounds.append((cold, stored, eager, compiled))
    cold, stored, eager, compiled = map(statistics.median, zip(*rounds, strict=True))
    return UpdateCost(
        first_seconds=round(cold, 1),
        stored_seconds=round(max(0.0, stored), 2),
        eager_ms=round(eager, 3),
        compiled_ms=round(compiled, 3),
    )


def write_table(costs: Mapping[str, Mapping[str, UpdateCost]], repeat: int) -> None:
    """Writes the table; agents that were not measured keep their rows."""
    table = json.loads(TABLE.read_text("utf-8")) if TABLE.exists() else {"agents": {}}
    for agent, kinds in costs.items():
        rows = table["agents"].setdefault(agent, {})
        rows.update({kind: cost.model_dump() for kind, cost in kinds.items()})
    table = {
        "command": "python -m benchmarks.compilation --write",
        "machine": describe_machine(),
        "torch": torch.__version__,
        "repeat": repeat,
        "agents": dict(sorted(table["agents"].items())),
    }
    TABLE.write_text(json.dumps(table, indent=1) + "\n", "utf-8")


def show_table(costs: Mapping[str, Mapping[str, UpdateCost]]) -> None:
    """Prints the costs, and from how many updates compilation saves time."""
    rows: list[Sequence[str]] = [
        ("update", "first start, s", "stored, s", "eager, ms", "compiled, ms", "worth it from")
    ]
    for agent, kinds in costs.items():
        for kind, cost in kinds.items():
            rows.append(
                (
                    f"{agent}, {kind}",
                    f"{cost.first_seconds:.1f}",
                    f"{cost.stored_seconds:.2f}",
                    f"{cost.eager_ms:.3f}",
                    f"{cost.compiled_ms:.3f}",
                    f"{cost.worth_updates:,.0f}",
                )
            )
    print(align_columns(rows))


def main() -> None:
    """Measures the kinds of updates, or trains one in this process."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cases = {case.name: case for case in list_cases()}
    parser.add_argument("--agents", help=f"comma-separated; of {', '.join(cases)}")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--train", nargs=2, metavar=("CASE", "MODE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train is not None:
        print(json.dumps(train(cases[options.train[0]], options.train[1])))
        return
    names = options.agents.split(",") if options.agents else None
    chosen = [
        case for case in cases.values() if names is None or {case.name, case.agent} & set(names)
    ]
    print(describe_machine(), "torch", torch.__version__)
    costs: dict[str, dict[str, UpdateCost]] = {}
    for case in chosen:
        costs.setdefault(case.agent, {})[case.kind] = measure_cost(case, options.repeat)
        show_table({case.agent: {case.kind: costs[case.agent][case.kind]}})
        if options.write:
            write_table(costs, options.repeat)
    show_table(costs)


if __name__ == "__main__":
    main()
