"""The kinds of faults, each injected into real processes, connections and disks."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks._chaos.installation import (
    RECLAIM_SECONDS,
    DisturbedTraining,
    Installation,
    pause,
    stop_and_continue,
)
from tests.support.disks import fill
from tests.support.waiting import wait_for

_REAPER_SECONDS = 5.0
PAST_RECLAIM = RECLAIM_SECONDS + 2 * _REAPER_SECONDS
"""Seconds of silence after which the reaper has marked an attempt as lost."""
PAST_DELAYED_RECLAIM = PAST_RECLAIM + RECLAIM_SECONDS + _REAPER_SECONDS
"""The same when all attempts are silent at once: the reaper then waits for the limit twice."""


@dataclass(frozen=True, slots=True)
class FaultKind:
    name: str
    inject: Callable[[Installation, list[DisturbedTraining]], None]
    """Injects the fault; called with all trainings that are halfway."""
    ends_attempts: bool = False
    """Whether the fault ends attempts."""
    affects_all: bool = False
    """Whether the fault affects every training at once."""
    needs_disks: bool = False


def _kill(installation: Installation, training: DisturbedTraining, module: str) -> None:
    for process in installation.processes(training, module)[:1]:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _kill_trainer(installation: Installation, targets: list[DisturbedTraining]) -> None:
    _kill(installation, targets[0], "workers.trainer_process")


def _kill_supervisor(installation: Installation, targets: list[DisturbedTraining]) -> None:
    _kill(installation, targets[0], "workers.supervisor")


def _kill_worker(installation: Installation, _: list[DisturbedTraining]) -> None:
    installation.stack.kill("worker")
    pause(installation.rng.uniform(0, 2))
    installation.stack.start_worker()


def _kill_server(installation: Installation, _: list[DisturbedTraining]) -> None:
    installation.stack.kill("server")
    pause(installation.rng.uniform(0, 2))
    installation.stack.start_server()


def _kill_broker(installation: Installation, _: list[DisturbedTraining]) -> None:
    installation.stack.kill("broker")
    pause(installation.rng.uniform(0, 2))
    installation.stack.start_broker()


def _freeze_attempt(installation: Installation, targets: list[DisturbedTraining]) -> None:
    attempt = installation.attempt_of(targets[0])
    frozen = [
        *installation.processes(targets[0], "workers.supervisor"),
        *installation.processes(targets[0], "workers.trainer_process"),
    ]
    stop_and_continue(frozen, PAST_RECLAIM)
    if attempt is not None:
        wait_for(
            lambda: (
                not installation.stack.list_module_processes(
                    "workers.trainer_process", attempt["id"]
                )
            ),
            "the frozen attempt ends as stale",
            patience_seconds=60,
        )


def _freeze_server(installation: Installation, _: list[DisturbedTraining]) -> None:
    stop_and_continue(
        [psutil.Process(installation.stack.processes["server"].pid)], installation.rng.uniform(1, 4)
    )


def _cut_connections(installation: Installation, _: list[DisturbedTraining]) -> None:
    installation.proxy.partition()
    pause(installation.rng.uniform(0.5, RECLAIM_SECONDS / 2))
    installation.proxy.heal()


def _partition(installation: Installation, _: list[DisturbedTraining]) -> None:
    installation.proxy.partition()
    pause(PAST_DELAYED_RECLAIM)
    installation.proxy.heal()


def _slow_connections(installation: Installation, _: list[DisturbedTraining]) -> None:
    installation.proxy.delay_seconds = installation.rng.uniform(0.1, 0.4)
    pause(5)
    installation.proxy.delay_seconds = 0.0


def _fill_worker_disk(installation: Installation, targets: list[DisturbedTraining]) -> None:
    _fill(
        installation.stack.directory / "worker",
        lambda: any(_has_disk_full(installation, training) for training in targets),
        25,
    )
    # Failed starts on the full disk may have made the worker drain.
    for worker in installation.stack.get("workers")["items"]:
        if worker["drain_reason"] is not None:
            installation.stack.post(f"workers/{worker['id']}:undrain")


def _fill_server_disk(installation: Installation, _: list[DisturbedTraining]) -> None:
    _fill(
        installation.stack.directory / "served",
        lambda: not installation.stack.is_server_ready(),
        10,
    )
    wait_for(
        installation.stack.is_server_ready,
        "the server is ready again once its disk has room",
        patience_seconds=30,
    )


def _fill(disk: Path, is_seen: Callable[[], bool], seconds: float) -> None:
    ballast = fill(disk)
    try:
        with suppress(AssertionError):  # nothing had to be written in that time
            wait_for(is_seen, "the full disk is seen", patience_seconds=seconds)
        pause(2)
    finally:
        ballast.unlink()


def _has_disk_full(installation: Installation, training: DisturbedTraining) -> bool:
    attempts = installation.stack.get(f"runs/{training.run_id}")["attempts"]
    return bool(attempts) and attempts[0]["cause"] in {"disk_full", "not_started"}


def _lose_claim_answer(installation: Installation, _: list[DisturbedTraining]) -> None:
    installation.proxy.answers_to_lose = lost = installation.rng.randint(1, 2)
    before = installation.proxy.lost_answers
    installation.keep_busy(len(installation.unfinished_trainings()) + 1)
    wait_for(
        lambda: installation.proxy.lost_answers >= before + lost,
        "the answer to a claim is lost",
        patience_seconds=120,
    )


FAULT_KINDS = (
    FaultKind("trainer killed", _kill_trainer, ends_attempts=True),
    FaultKind("supervisor killed", _kill_supervisor, ends_attempts=True),
    FaultKind("worker killed", _kill_worker),
    FaultKind("server killed", _kill_server),
    FaultKind("broker killed", _kill_broker),
    FaultKind("attempt frozen past its lease", _freeze_attempt, ends_attempts=True),
    FaultKind("server frozen", _freeze_server),
    FaultKind("connections cut", _cut_connections),
    FaultKind("partition past the lease", _partition, ends_attempts=True, affects_all=True),
    FaultKind("latency added", _slow_connections),
    FaultKind("answer to a claim lost", _lose_claim_answer),
    FaultKind("worker's disk full", _fill_worker_disk, affects_all=True, needs_disks=True),
    FaultKind("server's disk full", _fill_server_disk, needs_disks=True),
)
