"""Injects faults into running trainings and compares each with an undisturbed training.

Server, broker and worker are real processes. Each strike kills, freezes, disconnects or slows down
one of them, or fills its disk. At the end every run must have succeeded with the same episodes,
curves, evaluations and final parameters as the undisturbed run of its definition and seed, and none
may have been reported as ended before its result was stored.

    python -m benchmarks.chaos [--strikes 100] [--seed 0] [--database sqlite|postgresql]
        [--env-steps 30000] [--directory EMPTY]
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks._chaos.strikes import KINDS, Kind
from benchmarks._chaos.world import World, running_world
from benchmarks._report import aligned, machine
from tests.support import postgres


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--strikes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--env-steps", type=int, default=30_000)
    parser.add_argument(
        "--only", action="append", default=[], metavar="KIND", help="strike in these ways alone"
    )
    parser.add_argument(
        "--directory", type=Path, help="keep the logs of the processes here; its path must be short"
    )
    arguments = parser.parse_args()
    print(machine(), flush=True)
    with ExitStack() as stack:
        directory = arguments.directory or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="plr-", dir="/tmp"))
        )
        url = stack.enter_context(_postgres()) if arguments.database == "postgresql" else None
        world = stack.enter_context(
            running_world(directory, arguments.env_steps, arguments.seed, url)
        )
        struck = strike(world, arguments.strikes, tuple(arguments.only), echo=True)
        report(world, struck)
    return 1 if world.faults else 0


def strike(
    world: World, strikes: int, only: tuple[str, ...] = (), *, echo: bool = False
) -> Counter[str]:
    """Trains the references, injects `strikes` faults, and waits until all trainings have ended.

    Returns:
        How often each kind of fault was injected.
    """
    began = time.monotonic()
    world.train_undisturbed()
    made: Counter[str] = Counter()
    for kind in _schedule(world, strikes, only):
        hit = world.in_the_middle(deadly=kind.deadly)
        hit = hit if kind.on_all else [world.chance.choice(hit)]
        for one in hit:
            one.strikes.append(kind.name)
            one.deaths += kind.deadly
        kind.strike(world, hit)
        world.restart_the_dead()
        made[kind.name] += 1
        if echo:
            print(
                f"{time.monotonic() - began:7.1f} s  {sum(made.values()):4}  {kind.name}",
                flush=True,
            )
    world.finish()
    return made


def report(world: World, made: Counter[str]) -> None:
    """Prints the faults that were injected and their results."""
    rows = [("strike", "times")] + [
        (kind.name, str(made[kind.name]) if _possible(world, kind) else "not permitted here")
        for kind in KINDS
    ]
    print(aligned(rows))
    attempts = [len(world.stack.get(f"runs/{one.run_id}")["attempts"]) for one in world.trainings]
    retries = sum(one.retries for one in world.trainings)
    print(
        f"{sum(made.values())} strikes, {len(world.trainings)} trainings, {sum(attempts)} attempts"
    )
    print(f"{retries} retries by hand, after a full disk or three deaths within a minute")
    print(f"processes that ended without having been killed: {dict(world.restarts) or 'none'}")
    equal = len(world.trainings) - len({fault.split(" ", 1)[0] for fault in world.faults})
    print(f"{equal} of {len(world.trainings)} trainings equal the undisturbed one")


def _schedule(world: World, strikes: int, only: tuple[str, ...]) -> Iterator[Kind]:
    """Yields kinds of faults in random order, each equally often."""
    possible = [
        kind for kind in KINDS if _possible(world, kind) and (not only or kind.name in only)
    ]
    rounds: list[Kind] = []
    while len(rounds) < strikes:
        rounds += world.chance.sample(possible, len(possible))
    yield from rounds[:strikes]


def _possible(world: World, kind: Kind) -> bool:
    return world.has_disks or not kind.needs_disks


@contextmanager
def _postgres() -> Iterator[str]:
    root = postgres.make_root()
    try:
        yield postgres.ensure_started(root).create_database("chaos")
    finally:
        postgres.stop(root)


if __name__ == "__main__":
    sys.exit(main())
