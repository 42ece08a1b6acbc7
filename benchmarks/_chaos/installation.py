"""A server, a broker and a worker as real processes, and the trainings that faults interrupt.

The worker reaches the server through a proxy; both have small disks.
"""

import os
import random
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks._chaos.curves import list_differences, read_history
from tests.e2e.run_history import get_live_attempt, make_cartpole_definition
from tests.support.disks import may_mount, mount_small_disk
from tests.support.process_stack import Stack
from tests.support.proxy import Proxy, run_proxy
from tests.support.waiting import wait_for

RECLAIM_SECONDS = 8.0
SETTINGS = {
    "PALESTRA_LEASE_SECONDS": "6",
    "PALESTRA_RENEW_SECONDS": "1",
    "PALESTRA_RECLAIM_SECONDS": str(RECLAIM_SECONDS),
    "PALESTRA_HEARTBEAT_SECONDS": "0.5",
    "PALESTRA_ASSIGNMENT_SECONDS": "3",
}
WORKER_DISK_KIB = 96 * 1024
SERVER_DISK_KIB = 160 * 1024
_USER_CAUSES = ("disk_full", "poison")
"""Causes after which only a user can retry.

On a slow machine, faults may add up to the three deaths within a minute that count as `poison`.
"""
MAX_DEATHS = 2
"""Deaths of one run within a minute that are caused at most: a third counts as `poison`."""
_PPO = {
    "name": "ppo",
    "rollout_steps": 128,
    "passes": 4,
    "minibatch_size": 128,
    "hidden_sizes": [32, 32],
}


@dataclass(slots=True)
class DisturbedTraining:
    """A training into which faults may be injected."""

    run_id: str
    kind: str
    """Key of the reference training with which it must agree."""
    deaths: int = 0
    """Faults that ended one of its attempts."""
    faults: list[str] = field(default_factory=list)
    retries: int = 0


class Installation:
    """The processes of a Palestra installation in which the program injects faults.

    Args:
        stack: Starts and stops the processes.
        proxy: The proxy between worker and server.
        env_steps: Length of each training.
        seed: Seed of the random choices.
    """

    def __init__(self, stack: Stack, proxy: Proxy, env_steps: int, seed: int) -> None:
        self.stack = stack
        self.proxy = proxy
        self.env_steps = env_steps
        self.rng = random.Random(seed)
        self.trainings: list[DisturbedTraining] = []
        self.violations: list[str] = []
        """Descriptions of violated expectations."""
        self.restarts: dict[str, int] = {}
        """Number of processes per name that ended without having been killed by this program."""
        self.has_disks = False
        self._references: dict[str, dict[str, Any]] = {}
        self._succeeded: dict[str, bool] = {}
        """Whether each ended run succeeded, by its ID."""

    # Trainings

    def build_definition(self, kind: str, number: int) -> dict[str, Any]:
        """Returns a definition that is unique by its success score, which is never reached."""
        changes: dict[str, Any] = {
            "name": f"chaos {kind}",
            "stop": {"success_score": 10_000 + number},
            "snapshot": {"every_env_steps": 2_000},
        }
        if kind == "ppo":
            changes |= {"agent": _PPO, "env": {"id": "CartPole-v1", "num_envs": 4}}
        return make_cartpole_definition(self.env_steps, **changes)

    def train_undisturbed(self, seconds: float = 600) -> None:
        """Trains each kind once without faults, as the reference for trainings with faults."""
        for kind in ("dqn", "ppo"):
            (run,) = self.stack.submit(self.build_definition(kind, 0), seeds=[1])
            self.stack.wait_for_run(
                run["id"],
                lambda run: run["state"] == "succeeded",
                "the undisturbed run succeeds",
                patience_seconds=seconds,
            )
            self._references[kind] = read_history(self.stack, run["id"])

    def keep_busy(self, at_once: int = 3) -> None:
        """Submits trainings until `at_once` of them are unfinished."""
        while len(self.unfinished_trainings()) < at_once:
            kind = ("dqn", "ppo")[len(self.trainings) % 2]
            (run,) = self.stack.submit(
                self.build_definition(kind, len(self.trainings) + 1), seeds=[1]
            )
            self.trainings.append(DisturbedTraining(run["id"], kind))

    def unfinished_trainings(self) -> list[DisturbedTraining]:
        """Returns the trainings that have not ended, as the server reports them now."""
        return [
            training
            for training in self.trainings
            if training.run_id not in self._succeeded and not self._retry_or_has_ended(training)
        ]

    def wait_until_halfway(
        self, *, ends_attempts: bool, seconds: float = 300
    ) -> list[DisturbedTraining]:
        """Waits until trainings are halfway and returns them.

        With `ends_attempts`, waits until each of them can lose another attempt without counting as
        `poison`.
        """

        def ask() -> list[DisturbedTraining] | None:
            self.keep_busy()
            found = [
                training for training in self.unfinished_trainings() if self._is_halfway(training)
            ]
            # A fault that affects all trainings may end the attempt of each.
            return (
                None
                if ends_attempts and any(training.deaths >= MAX_DEATHS for training in found)
                else found
            )

        return wait_for(ask, "a training is in its middle", patience_seconds=seconds)

    def finish(self, seconds: float = 900) -> None:
        """Waits for the end of every training and compares each with the reference of its kind."""
        wait_for(
            lambda: not self.unfinished_trainings(),
            f"all trainings end: {[training.run_id for training in self.unfinished_trainings()]}",
            patience_seconds=seconds,
        )
        for training in (
            training for training in self.trainings if self._succeeded[training.run_id]
        ):
            found = list_differences(
                self._references[training.kind], read_history(self.stack, training.run_id)
            )
            if found:
                self._record_violation(training, f"differs: {'; '.join(found)}")

    # Processes

    def attempt_of(self, training: DisturbedTraining) -> dict[str, Any] | None:
        """Returns the live attempt of a training."""
        return get_live_attempt(self.stack, training.run_id)

    def processes(self, training: DisturbedTraining, module: str) -> list[psutil.Process]:
        """Returns the processes of a training's live attempt that run `module`.

        `module` is `workers.supervisor` or `workers.trainer_process`.
        """
        attempt = self.attempt_of(training)
        return [] if attempt is None else self.stack.list_module_processes(module, attempt["id"])

    def restart_ended_processes(self) -> None:
        """Restarts and counts processes that ended, as `palestra up` and service managers do."""
        starts = {
            "broker": self.stack.start_broker,
            "server": self.stack.start_server,
            "worker": self.stack.start_worker,
        }
        for name, start in starts.items():
            if self.stack.processes[name].poll() is not None:
                self.restarts[name] = self.restarts.get(name, 0) + 1
                start()

    # Private

    def _retry_or_has_ended(self, training: DisturbedTraining) -> bool:
        """Returns whether a training has ended for good.

        Queues a retry if the training failed with a cause that only a user can resolve.
        """
        run = self.stack.get(f"runs/{training.run_id}")
        if run["state"] == "failed" and run["cause"] in _USER_CAUSES:
            self.stack.post(f"runs/{training.run_id}:retry", {})
            training.retries += 1
            return False
        if run["state"] in {"succeeded", "failed", "cancelled"}:
            self._succeeded[training.run_id] = self._has_succeeded(training, run)
            return True
        return False

    def _has_succeeded(self, training: DisturbedTraining, run: Mapping[str, Any]) -> bool:
        if run["state"] != "succeeded":
            self._record_violation(training, f"{run['state']}: {run['cause']} {run['failure']}")
            return False
        snapshots = self.stack.get(f"runs/{training.run_id}/snapshots", limit=500)["items"]
        if any(
            row["reason"] == "finish" and row["state"] == "verified" and not row["superseded"]
            for row in snapshots
        ):
            return True
        self._record_violation(training, "succeeded before its result was stored")
        return False

    def _record_violation(self, training: DisturbedTraining, sentence: str) -> None:
        """Records a violated expectation and prints it with the attempts.

        The violation is printed at once, since the program may be stopped before its report.
        """
        self.violations.append(
            f"{training.run_id} ({training.kind}, {', '.join(training.faults)}) {sentence}"
        )
        attempts = self.stack.get(f"runs/{training.run_id}")["attempts"]
        ends = [
            (
                f"  {attempt['id']} {attempt['state']} {attempt['outcome']} "
                f"{attempt['cause']} {attempt['failure']}"
            )
            for attempt in attempts
        ]
        print("\n".join([f"FAULT {self.violations[-1]}", *ends]), file=sys.stderr, flush=True)

    def _is_halfway(self, training: DisturbedTraining) -> bool:
        run = self.stack.get(f"runs/{training.run_id}")
        return (
            run["state"] == "running"
            and 0.05 < run["progress"]["env_step"] / self.env_steps < 0.7
            and self.attempt_of(training) is not None
        )


@contextmanager
def run_installation(
    directory: Path, env_steps: int, seed: int, database_url: str | None = None
) -> Iterator[Installation]:
    """Starts all processes and stops them when the block ends.

    If this account may mount, worker and server have small disks of their own.
    """
    with ExitStack() as opened:
        has_disks = may_mount()
        if has_disks:
            opened.enter_context(mount_small_disk(directory / "worker", WORKER_DISK_KIB))
            opened.enter_context(mount_small_disk(directory / "served", SERVER_DISK_KIB))
        served = directory / "served"
        served.mkdir(parents=True, exist_ok=True)
        url = database_url or f"sqlite:///{served / 'palestra.db'}"
        stack = Stack(
            directory,
            slots=2,
            database_url=url,
            settings={**SETTINGS, "PALESTRA_ARTIFACTS_URL": f"file://{served / 'blobs'}"},
        )
        proxy = opened.enter_context(run_proxy(stack.port))
        stack.worker_url = proxy.url
        opened.enter_context(stack)
        installation = Installation(stack, proxy, env_steps, seed)
        installation.has_disks = has_disks
        yield installation


def pause(seconds: float) -> None:
    """Waits for the duration of a fault."""
    time.sleep(seconds)


def stop_and_continue(processes: list[psutil.Process], seconds: float) -> None:
    """Stops processes with SIGSTOP and continues them after a while."""
    for process in processes:
        process.suspend()
    try:
        pause(seconds)
    finally:
        for process in processes:
            if process.is_running() and process.pid != os.getpid():
                process.resume()
