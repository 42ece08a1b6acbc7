"""The kinds of faults, each injected into real processes, connections and disks."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks._chaos.world import RECLAIM_SECONDS, Struck, World, pause, stop_and_continue
from tests.support.disks import fill
from tests.support.process_stack import wait_for

_REAPER_SECONDS = 5.0
PAST_RECLAIM = RECLAIM_SECONDS + 2 * _REAPER_SECONDS
"""Seconds of silence after which the reaper has marked an attempt as lost."""
PAST_THE_BRAKE = PAST_RECLAIM + RECLAIM_SECONDS + _REAPER_SECONDS
"""The same when all attempts are silent at once: the reaper then waits for the limit twice."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault."""

    name: str
    strike: Callable[[World, list[Struck]], None]
    """Injects the fault; called with all trainings that are halfway."""
    deadly: bool = False
    """Whether the fault ends attempts."""
    on_all: bool = False
    """Whether the fault affects every training at once."""
    needs_disks: bool = False


def _kill(world: World, struck: Struck, module: str) -> None:
    for process in world.processes(struck, module)[:1]:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _kill_trainer(world: World, struck: list[Struck]) -> None:
    _kill(world, struck[0], "workers.trainer_process")


def _kill_supervisor(world: World, struck: list[Struck]) -> None:
    _kill(world, struck[0], "workers.supervisor")


def _kill_worker(world: World, _: list[Struck]) -> None:
    world.stack.kill("worker")
    pause(world.chance.uniform(0, 2))
    world.stack.start_worker()


def _kill_server(world: World, _: list[Struck]) -> None:
    world.stack.kill("server")
    pause(world.chance.uniform(0, 2))
    world.stack.start_server()


def _kill_broker(world: World, _: list[Struck]) -> None:
    world.stack.kill("broker")
    pause(world.chance.uniform(0, 2))
    world.stack.start_broker()


def _freeze_attempt(world: World, struck: list[Struck]) -> None:
    attempt = world.attempt_of(struck[0])
    frozen = [
        *world.processes(struck[0], "workers.supervisor"),
        *world.processes(struck[0], "workers.trainer_process"),
    ]
    stop_and_continue(frozen, PAST_RECLAIM)
    if attempt is not None:
        wait_for(
            lambda: not world.stack.module_processes("workers.trainer_process", attempt["id"]),
            60,
            "the frozen attempt ends as stale",
        )


def _freeze_server(world: World, _: list[Struck]) -> None:
    stop_and_continue(
        [psutil.Process(world.stack.processes["server"].pid)], world.chance.uniform(1, 4)
    )


def _cut_connections(world: World, _: list[Struck]) -> None:
    world.proxy.partition()
    pause(world.chance.uniform(0.5, RECLAIM_SECONDS / 2))
    world.proxy.heal()


def _partition(world: World, _: list[Struck]) -> None:
    world.proxy.partition()
    pause(PAST_THE_BRAKE)
    world.proxy.heal()


def _slow_connections(world: World, _: list[Struck]) -> None:
    world.proxy.delay_seconds = world.chance.uniform(0.1, 0.4)
    pause(5)
    world.proxy.delay_seconds = 0.0


def _fill_worker_disk(world: World, struck: list[Struck]) -> None:
    _fill(
        world.stack.directory / "worker",
        lambda: any(_has_disk_full(world, one) for one in struck),
        25,
    )


def _fill_server_disk(world: World, _: list[Struck]) -> None:
    _fill(world.stack.directory / "served", lambda: not world.stack.server_is_ready(), 10)
    wait_for(world.stack.server_is_ready, 30, "the server is ready again once its disk has room")


def _fill(disk: Path, is_seen: Callable[[], bool], seconds: float) -> None:
    ballast = fill(disk)
    try:
        with suppress(AssertionError):  # nothing had to be written in that time
            wait_for(is_seen, seconds, "the full disk is seen")
        pause(2)
    finally:
        ballast.unlink()


def _has_disk_full(world: World, struck: Struck) -> bool:
    attempts = world.stack.get(f"runs/{struck.run_id}")["attempts"]
    return bool(attempts) and attempts[0]["cause"] == "disk_full"


def _lose_claim_answer(world: World, _: list[Struck]) -> None:
    world.proxy.answers_to_lose = lost = world.chance.randint(1, 2)
    before = world.proxy.lost_answers
    world.keep_busy(len(world.unfinished()) + 1)
    wait_for(
        lambda: world.proxy.lost_answers >= before + lost, 120, "the answer to a claim is lost"
    )


KINDS = (
    Kind("trainer killed", _kill_trainer, deadly=True),
    Kind("supervisor killed", _kill_supervisor, deadly=True),
    Kind("worker killed", _kill_worker),
    Kind("server killed", _kill_server),
    Kind("broker killed", _kill_broker),
    Kind("attempt frozen past its lease", _freeze_attempt, deadly=True),
    Kind("server frozen", _freeze_server),
    Kind("connections cut", _cut_connections),
    Kind("partition past the lease", _partition, deadly=True, on_all=True),
    Kind("latency added", _slow_connections),
    Kind("answer to a claim lost", _lose_claim_answer),
    Kind("worker's disk full", _fill_worker_disk, on_all=True, needs_disks=True),
    Kind("server's disk full", _fill_server_disk, needs_disks=True),
)
