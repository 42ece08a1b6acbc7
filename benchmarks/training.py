"""Throughput of whole trainings, learning included, beside the peers on equal settings: one thread, a fresh process each, taking turns.

    python -m benchmarks.training [--tasks dqn1,dqn4,ppo,a2c,sac] [--peers sb3,pfrl,tianshou,plain] [--repeat 3]

The rate leaves out start-up, and what the first learn takes longer than the second (compilation); the columns beside it hold both, and the
rate with all of it. A peer that is not installed is left out: `make bench-peers` installs them all. Absolute figures drift from machine to
machine and from hour to hour: compare within one run only.
"""

import argparse
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks._peers.tables import Results, table
from benchmarks._peers.tasks import PEERS, TASKS, Task
from benchmarks._report import machine

OURS = "palestra"
TIANSHOU = Path(".setup/tianshou/bin/python")
"""An environment of its own over ours, by `make bench-peers`: it wants other versions of packages that Palestra has too."""


def command(peer: str, task: str, seed: int, env_steps: int | None = None) -> list[str]:
    """Returns what trains one seed in a process of its own."""
    options = ["--peer", peer, "--task", task, "--seed", str(seed), "--started", repr(time.time())]
    if env_steps:
        options += ["--env-steps", str(env_steps)]
    python = str(TIANSHOU) if peer == "tianshou" and TIANSHOU.exists() else sys.executable
    return [python, "-m", "benchmarks._peers.runner", *options]


def installed(peers: Sequence[str]) -> list[str]:
    """Returns those that can be measured here and says how to get the others."""
    found = []
    for peer in peers:
        distribution = PEERS[peer]
        has_own = peer == "tianshou" and TIANSHOU.exists()
        if distribution and not has_own and importlib.util.find_spec(distribution.replace("-", "_")) is None:
            print(f"{peer} is left out: it is not installed (pip install {distribution}, or make bench-peers)")
        else:
            found.append(peer)
    return found


def rounds(task: Task, peers: Sequence[str], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yields one result after another; the peers take turns, so that whatever slows the machine slows them all."""
    given_up: set[str] = set()
    for seed in range(options.repeat):
        for peer in peers:
            if peer in given_up:
                continue
            result = trained(peer, task, seed, options.env_steps)
            if "left_out" in result:
                given_up.add(peer)
                print(f"{peer} is left out of {task.name}: {result['left_out']}")
            else:
                yield result


def trained(peer: str, task: Task, seed: int, env_steps: int | None) -> dict[str, Any]:
    finished = subprocess.run(command(peer, task.name, seed, env_steps), capture_output=True, text=True, check=False)
    if finished.returncode:
        last = finished.stderr.strip().splitlines()[-1:] or ["without a word"]
        return {"left_out": f"it failed: {last[0]}"}
    result: dict[str, Any] = json.loads(finished.stdout.strip().splitlines()[-1])
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default=",".join(TASKS), help="names, separated by commas")
    parser.add_argument("--peers", default=",".join(PEERS), help="names, separated by commas")
    parser.add_argument("--repeat", type=int, default=3, help="trainings of each peer, each with a seed of its own")
    parser.add_argument("--env-steps", type=int, help="shorter or longer than the tasks are; for trying out")
    parser.add_argument("--json", action="store_true", help="print each training's line too")
    options = parser.parse_args()
    tasks = [TASKS[name] for name in names(parser, options.tasks, TASKS)]
    peers = installed(names(parser, options.peers, PEERS))
    print(machine())
    good = True
    for task in tasks:
        results = Results(OURS, task.target)
        for result in rounds(task, [OURS, *peers], options):
            results.add(result)
            if options.json:
                print(json.dumps(result), flush=True)
        print(f"\n{task.title}: {task.env}, {options.env_steps or task.env_steps:,} env_steps, {options.repeat} trainings each")
        print(table(results), flush=True)
        good = results.met and good
    return 0 if good else 1


def names(parser: argparse.ArgumentParser, text: str, known: dict[str, Any]) -> list[str]:
    given = [name for name in text.split(",") if name]
    for name in given:
        if name not in known:
            parser.error(f"{name!r} is none of {', '.join(known)}")
    return given


if __name__ == "__main__":
    raise SystemExit(main())
