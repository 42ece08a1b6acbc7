import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from palestra.contract.names import new_id
from palestra.contract.work_order import WorkOrder
from tests.support.waiting import PATIENCE_SECONDS, wait_for
from workers.ipc.attempt_directory import AttemptDirectory, read_json
from workers.ipc.process_tree import find_processes

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from scripted_server import ScriptedServer  # noqa: E402

TOKEN = "attempt-token-that-nobody-sees"


def make_work_order(**changes: Any) -> WorkOrder:
    definition = {
        "kind": "rl",
        "schema_version": 2,
        "name": "test",
        "env": {"id": "CartPole-v1"},
        "agent": {"name": "dqn"},
        "loop": {"env_steps": 1000},
    }
    document = {
        "attempt_id": new_id("att"),
        "attempt_number": 1,
        "job_id": new_id("job"),
        "experiment_id": "test-0",
        "schedule": "train",
        "definition": definition,
        "code": {"kind": "builtin"},
        "resources": {},
        "limits": {"grace_seconds": 5},
        "runs": [{"run_id": new_id("run"), "seed": 1, "fence": 1}],
        **changes,
    }
    return WorkOrder.model_validate_json(json.dumps(document))


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    scripted = ScriptedServer()
    scripted.start()
    yield scripted
    scripted.stop()


class SupervisorBench:
    """A real supervisor whose trainer is the scripted fake trainer, in real processes."""

    def __init__(
        self,
        state: Path,
        server: ScriptedServer,
        mode: str,
        *,
        renew_seconds: float = 0.3,
        **changes: Any,
    ) -> None:
        self.renew_seconds = renew_seconds
        self.order = make_work_order(**changes)
        self.directory = AttemptDirectory(state / "attempts" / self.order.attempt_id)
        self.directory.create(self.order.model_dump_json().encode())
        self.server = server
        self.slot = os.open(state / "slot.lock", os.O_RDWR | os.O_CREAT)
        fcntl.flock(self.slot, fcntl.LOCK_EX)
        self.slot_path = state / "slot.lock"
        self.environ = {
            **os.environ,
            "PYTHONPATH": str(HERE),
            "PALESTRA_TEST_TRAINER": mode,
            "PALESTRA_BROKER_URL": "redis://:secret@x",
            "MY_API_TOKEN": "secret",
        }

    def start(self) -> None:
        read_end, write_end = os.pipe()
        command = [
            sys.executable,
            "-m",
            "workers.supervisor",
            "--attempt-dir",
            str(self.directory.root),
            "--trainer-module",
            "fake_trainer",
        ]
        places = ["--ready-fd", str(write_end), "--slot-fd", str(self.slot), "--gpus", "0,1"]
        starter = subprocess.Popen(
            [*command, *places],
            stdin=subprocess.PIPE,
            pass_fds=(write_end, self.slot),
            env=self.environ,
            start_new_session=True,
        )
        os.close(write_end)
        os.close(self.slot)
        assert starter.stdin is not None
        starter.stdin.write(
            json.dumps(
                {"server": self.server.url, "token": TOKEN, "renew_seconds": self.renew_seconds}
            ).encode()
        )
        starter.stdin.close()
        assert starter.wait(PATIENCE_SECONDS) == 0, "the first process leaves at once"
        with os.fdopen(read_end, "rb") as ready:
            assert ready.read() == b"ready\n", self.log()

    def log(self) -> str:
        return (
            self.directory.supervisor_log.read_text()
            if self.directory.supervisor_log.exists()
            else ""
        )

    def send_signal(self, number: signal.Signals) -> None:
        identity = self.directory.supervisor()
        assert identity is not None
        assert identity.send(number)

    def is_gone(self) -> bool:
        identity = self.directory.supervisor()
        return identity is not None and not identity.is_alive()

    def list_processes(self) -> set[int]:
        trainer = self.directory.trainer()
        return set(find_processes(self.directory.mark, trainer.pid if trainer else None))

    def is_slot_free(self) -> bool:
        descriptor = os.open(self.slot_path, os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(descriptor)
        return True

    def wait_for_step(self, step: int) -> None:
        wait_for(
            lambda: read_json(self.directory.progress).get("env_step", 0) >= step,
            lambda: f"step {step}\n{self.log()}",
        )

    def wait_for_end(self) -> dict[str, Any]:
        """Waits until the supervisor ends; returns the report that the server received."""
        wait_for(self.is_gone, lambda: f"the supervisor ends\n{self.log()}")
        assert not self.list_processes()
        wait_for(self.is_slot_free, "the slot is free")
        assert len(self.server.releases) == 1, self.log()
        assert self.directory.released.exists()
        report: dict[str, Any] = self.server.releases[0]["report"]
        return report

    def kill_everything(self) -> None:
        identity = self.directory.supervisor()
        if identity is not None:
            identity.send(signal.SIGKILL)
        for process in find_processes(self.directory.mark, None).values():
            process.send(signal.SIGKILL)


@pytest.fixture
def start_supervisor(
    tmp_path: Path, server: ScriptedServer
) -> Iterator[Callable[..., SupervisorBench]]:
    started: list[SupervisorBench] = []

    def start(mode: str = "train", **changes: Any) -> SupervisorBench:
        supervised = SupervisorBench(tmp_path, server, mode, **changes)
        started.append(supervised)
        supervised.start()
        return supervised

    yield start
    for supervised in started:
        supervised.kill_everything()


@pytest.fixture
def bench(tmp_path: Path, server: ScriptedServer) -> Iterator[Any]:
    """A worker and a broker.

    `worker_bench` is imported in the function, since it imports this module.
    """
    from worker_bench import WorkerBench

    found = WorkerBench(tmp_path, server)
    yield found
    found.close()
