"""Throughput of whole trainings, learning included, of Palestra and of other libraries.

    python -m benchmarks.training [--tasks dqn1,dqn4,ppo,a2c,a3c,sac,pong] [--peers
        sb3,pfrl,tianshou,plain] [--repeat 3]
                                  [--pack 16] [--packs 2]

All libraries train with equal settings, in turn, each in a fresh process on one thread. On CartPole
Palestra trains with its own simulator, as by default, and with Gymnasium's, as the others do. The
rate excludes the start-up and the extra time of the first update (compilation), which other columns
show together with the rate that includes both. With `--packs`, the seeds of a pack are also trained
as that many concurrent packs, one process each, like a worker with that many slots. A library that
is not installed is left out; `make bench-peers` installs all of them. Absolute figures vary between
machines and hours: compare figures of one run only.
"""

import argparse
import contextlib
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from benchmarks._peers.tables import COMPILED, EAGER, PACK, PACKS, REGISTERED, Results, combine
from benchmarks._peers.tasks import PEERS, TASKS, Task
from benchmarks._report import describe_machine

TIANSHOU = Path(".setup/tianshou/bin/python")
"""Interpreter of a separate environment made by `make bench-peers`.

tianshou requires other versions of packages that Palestra uses too.
"""

MODES = {"eager": EAGER, "compiled": COMPILED}


def build_peer_command(peer: str, task: Task, seed: int) -> list[str]:
    """Returns the command that trains one seed in a separate process."""
    python = str(TIANSHOU) if peer == "tianshou" and TIANSHOU.exists() else sys.executable
    return [
        python,
        "-m",
        "benchmarks._peers.runner",
        "--peer",
        peer,
        "--task",
        task.name,
        "--seeds",
        str(seed),
    ]


def build_palestra_command(
    task: Task, seeds: Sequence[int], compile_mode: str, simulator: str = "auto"
) -> list[str]:
    """Returns the command that trains seeds in a separate process, several of them as a pack."""
    label = name_training(compile_mode, simulator) if len(seeds) == 1 else PACK
    options = [
        "--task",
        task.name,
        "--seeds",
        ",".join(map(str, seeds)),
        "--compile",
        compile_mode,
        "--simulator",
        simulator,
        "--label",
        label,
    ]
    return [sys.executable, "-m", "benchmarks._peers.runner", "--peer", "palestra", *options]


def name_training(compile_mode: str, simulator: str) -> str:
    """Returns the label of Palestra's trainings of one seed."""
    return MODES[compile_mode] + ("" if simulator == "auto" else REGISTERED)


def find_installed_peers(peers: Sequence[str]) -> list[str]:
    """Returns the installed peers; prints how to install the others."""
    found = []
    for peer in peers:
        distribution = PEERS[peer]
        has_own = peer == "tianshou" and TIANSHOU.exists()
        if (
            distribution
            and not has_own
            and importlib.util.find_spec(distribution.replace("-", "_")) is None
        ):
            print(
                f"{peer} is left out: it is not installed (pip install {distribution}, "
                "or make bench-peers)"
            )
        else:
            found.append(peer)
    return found


def list_commands(
    task: Task, peers: Sequence[str], modes: Sequence[str], turn: int, options: argparse.Namespace
) -> dict[str, list[list[str]]]:
    """Returns the commands of one turn by name; those under one name run concurrently."""
    # The others compute the environment with Gymnasium's code, and so does Palestra in the second.
    simulators = ("auto", "registered") if task.env.startswith("CartPole-") else ("auto",)
    ours = {
        name_training(mode, simulator): [build_palestra_command(task, [turn], mode, simulator)]
        for simulator in simulators
        for mode in modes
    }
    seeds = range(turn * options.pack, (turn + 1) * options.pack)
    if options.pack > 1 and task.pack_target is not None:
        ours[PACK] = [build_palestra_command(task, seeds, modes[-1])]
        if options.packs > 1:
            ours[PACKS] = [
                build_palestra_command(task, seeds[index :: options.packs], modes[-1])
                for index in range(options.packs)
            ]
    return {**ours, **{peer: [build_peer_command(peer, task, turn)] for peer in peers}}


def read_results(
    task: Task, peers: Sequence[str], modes: Sequence[str], options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Yields the result of each training.

    The programs run in turns, so that other load on the machine affects all of them.
    """
    given_up: set[str] = set()
    for turn in range(options.repeat):
        for name, at_once in list_commands(task, peers, modes, turn, options).items():
            if name in given_up:
                continue
            result = run_concurrently(at_once, options.env_steps)
            if "left_out" in result:
                given_up.add(name)
                print(f"{name} is left out of {task.name}: {result['left_out']}")
            else:
                yield result


def run_concurrently(at_once: list[list[str]], env_steps: int | None) -> dict[str, Any]:
    """Runs the commands concurrently and returns their combined result."""
    length = ["--env-steps", str(env_steps)] if env_steps else []
    with contextlib.ExitStack() as stack:
        running = []
        for command in at_once:
            said, complained = (
                stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(2)
            )  # a full pipe would stop who writes to it
            begun = subprocess.Popen(
                [*command, *length, "--started", repr(time.time())], stdout=said, stderr=complained
            )
            running.append((begun, said, complained))
        results = [
            _result(process.wait(), said, complained) for process, said, complained in running
        ]
    return next((result for result in results if "left_out" in result), None) or combine(results)


def _result(exit_code: int, said: IO[str], complained: IO[str]) -> dict[str, Any]:
    said.seek(0)
    complained.seek(0)
    if exit_code:
        last = complained.read().strip().splitlines()[-1:] or ["without a word"]
        return {"left_out": f"it failed: {last[0]}"}
    result: dict[str, Any] = json.loads(said.read().strip().splitlines()[-1])
    return result


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", default=",".join(TASKS), help="names, separated by commas")
    parser.add_argument("--peers", default=",".join(PEERS), help="names, separated by commas")
    parser.add_argument(
        "--compile",
        default=",".join(MODES),
        help="how Palestra runs its updates; packs take the last one",
    )
    parser.add_argument(
        "--repeat", type=int, default=3, help="trainings of each peer, each with a seed of its own"
    )
    parser.add_argument(
        "--pack",
        type=int,
        default=0,
        help="also train a pack of so many seeds, where a target is set",
    )
    parser.add_argument(
        "--packs",
        type=int,
        default=1,
        help="also train the seeds of a pack as so many packs at once, on a core each",
    )
    parser.add_argument(
        "--env-steps", type=int, help="shorter or longer than the tasks are; for trying out"
    )
    parser.add_argument("--json", action="store_true", help="print each training's line too")
    options = parser.parse_args()
    if not 1 <= options.packs <= max(1, options.pack):
        parser.error("--packs divides the seeds of --pack: it is at least 1 and no more than these")
    tasks = [TASKS[name] for name in names(parser, options.tasks, TASKS)]
    peers, modes = (
        find_installed_peers(names(parser, options.peers, PEERS)),
        names(parser, options.compile, MODES),
    )
    print(describe_machine())
    good = True
    for task in tasks:
        results = Results(task, options.pack, options.packs)
        for result in read_results(
            task, [peer for peer in peers if peer in task.peers], modes, options
        ):
            results.add(result)
            if options.json:
                print(json.dumps(result), flush=True)
        print(
            f"\n{task.title}: {task.env}, {options.env_steps or task.env_steps:,} "
            f"env_steps, trainings each: {options.repeat}"
        )
        print(results.table())
        for line, met in results.compare_with_targets():
            print(f"{line}  {'ok' if met else 'MISSED'}", flush=True)
            good = met and good
    return 0 if good else 1


def names(parser: argparse.ArgumentParser, text: str, known: dict[str, Any]) -> list[str]:
    given = [name for name in text.split(",") if name]
    for name in given:
        if name not in known:
            parser.error(f"{name!r} is none of {', '.join(known)}")
    return given


if __name__ == "__main__":
    raise SystemExit(main())
