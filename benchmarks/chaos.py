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

from benchmarks._chaos.faults import FAULT_KINDS, FaultKind
from benchmarks._chaos.installation import Installation, run_installation
from benchmarks._report import align_columns, describe_machine
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
    print(describe_machine(), flush=True)
    with ExitStack() as stack:
        directory = arguments.directory or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="plr-", dir="/tmp"))
        )
        url = stack.enter_context(_postgres()) if arguments.database == "postgresql" else None
        installation = stack.enter_context(
            run_installation(directory, arguments.env_steps, arguments.seed, url)
        )
        injected = inject_faults(installation, arguments.strikes, tuple(arguments.only), echo=True)
        report(installation, injected)
    return 1 if installation.violations else 0


def inject_faults(
    installation: Installation, count: int, only: tuple[str, ...] = (), *, echo: bool = False
) -> Counter[str]:
    """Trains the references, injects `count` faults, and waits until all trainings have ended.

    Returns:
        How often each kind of fault was injected.
    """
    began = time.monotonic()
    installation.train_undisturbed()
    injected: Counter[str] = Counter()
    for kind in _draw_kinds(installation, count, only):
        targets = installation.wait_until_halfway(ends_attempts=kind.ends_attempts)
        targets = targets if kind.affects_all else [installation.rng.choice(targets)]
        for training in targets:
            training.faults.append(kind.name)
            training.deaths += kind.ends_attempts
        kind.inject(installation, targets)
        installation.restart_ended_processes()
        injected[kind.name] += 1
        if echo:
            print(
                f"{time.monotonic() - began:7.1f} s  {sum(injected.values()):4}  {kind.name}",
                flush=True,
            )
    installation.finish()
    return injected


def report(installation: Installation, injected: Counter[str]) -> None:
    """Prints the faults that were injected and their results."""
    rows = [("fault", "times")] + [
        (
            kind.name,
            str(injected[kind.name]) if _possible(installation, kind) else "not permitted here",
        )
        for kind in FAULT_KINDS
    ]
    print(align_columns(rows))
    attempts = [
        len(installation.stack.get(f"runs/{training.run_id}")["attempts"])
        for training in installation.trainings
    ]
    retries = sum(training.retries for training in installation.trainings)
    print(
        f"{sum(injected.values())} faults, {len(installation.trainings)} trainings, "
        f"{sum(attempts)} attempts"
    )
    print(f"{retries} retries by hand, after a full disk or three deaths within a minute")
    print(
        f"processes that ended without having been killed: {dict(installation.restarts) or 'none'}"
    )
    equal = len(installation.trainings) - len(
        {fault.split(" ", 1)[0] for fault in installation.violations}
    )
    print(f"{equal} of {len(installation.trainings)} trainings equal the undisturbed one")


def _draw_kinds(
    installation: Installation, count: int, only: tuple[str, ...]
) -> Iterator[FaultKind]:
    """Yields kinds of faults in random order, each equally often."""
    possible = [
        kind
        for kind in FAULT_KINDS
        if _possible(installation, kind) and (not only or kind.name in only)
    ]
    rounds: list[FaultKind] = []
    while len(rounds) < count:
        rounds += installation.rng.sample(possible, len(possible))
    yield from rounds[:count]


def _possible(installation: Installation, kind: FaultKind) -> bool:
    return installation.has_disks or not kind.needs_disks


@contextmanager
def _postgres() -> Iterator[str]:
    root = postgres.make_root()
    try:
        yield postgres.ensure_server(root).create_database("chaos")
    finally:
        postgres.stop(root)


if __name__ == "__main__":
    sys.exit(main())
