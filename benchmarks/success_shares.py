"""How many seeds of a task reach a return, for Palestra and for other libraries on equal settings.

    python -m benchmarks.success_shares [--task ppo] [--peers sb3,plain] [--seeds 40] [--pack 20]
        [--at 475] [--keep FILE]

The return of a seed is the mean over 20 greedy episodes after its training; all seeds have the same
episodes. The table shows the share of seeds that reach the return, with its 95 % interval (Wilson
1927). A row of Palestra is MISSED if its interval lies wholly below that of another library. The
other libraries train one seed after the other, each in a fresh process on one thread; Palestra
trains packs of seeds. With `--keep`, the seeds in the file are not trained again and new results
are added to the file, so that a long comparison can be made in pieces.
"""

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks._peers.tables import PACK
from benchmarks._peers.tasks import PEERS, TASKS, Task
from benchmarks._report import align_columns, describe_machine
from benchmarks.training import (
    build_palestra_command,
    build_peer_command,
    find_installed_peers,
    names,
    run_concurrently,
)

_QUANTILE: Final = 1.959964
"""Quantile of the standard normal distribution for a 95 % interval."""
OURS: Final = "Palestra"


def compute_wilson_interval(reached: int, count: int) -> tuple[float, float]:
    """Returns the ends of the 95 % interval of a share (Wilson 1927, equation 4).

    The share is `reached / count`; `count` must be at least 1.
    """
    share, squared = reached / count, _QUANTILE**2
    centre = (share + squared / (2 * count)) / (1 + squared / count)
    half = (
        _QUANTILE
        * math.sqrt(share * (1 - share) / count + squared / (4 * count**2))
        / (1 + squared / count)
    )
    return max(0.0, centre - half), min(1.0, centre + half)


class StoredReturns:
    """The return of each seed of each library, and the file that stores them.

    Args:
        task: Task of the returns; lines of other tasks are ignored.
        file: Lines of JSON; with `None` nothing is stored.
    """

    def __init__(self, task: Task, file: Path | None) -> None:
        self._task, self._file = task.name, file
        self.returns: dict[str, dict[int, float]] = {}
        lines = file.read_text("utf-8").splitlines() if file is not None and file.exists() else ()
        for line in lines:
            self._take(json.loads(line))

    def add(self, result: dict[str, Any]) -> None:
        """Adds the result in a line of `benchmarks._peers.runner`."""
        self._take(result)
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")

    def list_missing_seeds(self, peer: str, seeds: Sequence[int]) -> list[int]:
        """Returns the seeds of a library that have no return yet."""
        return [seed for seed in seeds if seed not in self.returns.get(peer, {})]

    def _take(self, result: dict[str, Any]) -> None:
        if result["task"] == self._task:
            peer = OURS if result["peer"] == PACK else result["peer"]
            seeds = (int(seed) for seed in result["seeds"].split(","))
            self.returns.setdefault(peer, {}).update(
                zip(seeds, result.get("returns") or [result["mean_return"]], strict=True)
            )


def list_trainings(
    kept: StoredReturns, task: Task, peers: Sequence[str], seeds: Sequence[int], pack: int
) -> Iterator[list[str]]:
    """Yields the commands that train the missing seeds.

    First come Palestra's, in packs of `pack` seeds, then one per seed of each peer.
    """
    ours = kept.list_missing_seeds(OURS, seeds)
    for begin in range(0, len(ours), pack):
        some = ours[begin : begin + pack]
        yield build_palestra_command(
            task, some if len(some) > 1 else [*some, some[0] + len(seeds)], "compiled"
        )  # one alone has another name
    for peer in peers:
        for seed in kept.list_missing_seeds(peer, seeds):
            yield build_peer_command(peer, task, seed)


def count_rows(
    kept: StoredReturns, peers: Sequence[str], seeds: Sequence[int], at: float
) -> Iterator[tuple[str, int, int]]:
    """Yields, for each library, how many of its trained seeds reach the return."""
    for peer in (OURS, *peers):
        known = [value for seed, value in kept.returns.get(peer, {}).items() if seed in seeds]
        if known:
            yield peer, sum(value >= at for value in known), len(known)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--task",
        default="ppo",
        choices=sorted(name for name, task in TASKS.items() if task.pack_target is not None),
    )
    parser.add_argument("--peers", default="sb3", help="names, separated by commas")
    parser.add_argument("--seeds", type=int, default=40, help="the seeds 0 to this, exclusive")
    parser.add_argument(
        "--pack", type=int, default=20, help="our seeds that are trained as one batch"
    )
    parser.add_argument("--at", type=float, default=475.0, help="mean return to reach")
    parser.add_argument(
        "--keep", type=Path, help="file of lines of JSON that is read first and added to"
    )
    options = parser.parse_args()
    task, seeds = TASKS[options.task], range(options.seeds)
    peers = find_installed_peers(names(parser, options.peers, PEERS))
    kept = StoredReturns(task, options.keep)
    print(describe_machine())
    for command in list_trainings(kept, task, peers, seeds, options.pack):
        result = run_concurrently([command], None)
        if "left_out" in result:
            print(f"{' '.join(command[-4:])}: {result['left_out']}")
            return 1
        kept.add(result)
        print(f"{result['peer']}, seeds {result['seeds']}: {result['returns']}", flush=True)
    found = {
        peer: (reached, count, *compute_wilson_interval(reached, count))
        for peer, reached, count in count_rows(kept, peers, seeds, options.at)
    }
    head = ("", "seeds", f"reach {options.at:g}", "share", "95 % interval")
    table = [
        (peer, str(n), str(k), f"{k / n:.3f}", f"{low:.3f} to {high:.3f}")
        for peer, (k, n, low, high) in found.items()
    ]
    print(
        f"\n{task.title}: {task.env}, {task.env_steps:,} env_steps\n"
        + align_columns([head, *table])
    )
    below = [peer for peer in peers if peer in found and found[OURS][3] < found[peer][2]]
    for peer in peers:
        print(f"not wholly below {peer}  {'MISSED' if peer in below else 'ok'}")
    return 1 if below else 0


if __name__ == "__main__":
    raise SystemExit(main())
