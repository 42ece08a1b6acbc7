"""Starts a trainer process, sends it orders through a pipe, and ends it.

The trainer gets no credential. All processes that it started end with it.

Independent of the server.
"""

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from palestra.contract.names import TRAINER_SIMULATOR
from palestra.contract.states import Order
from palestra.python_command import build_python_command
from workers.ipc.attempt_directory import (
    ATTEMPT_VARIABLE,
    CONTROL_FD_VARIABLE,
    AttemptDirectory,
    write_identity,
)
from workers.ipc.process_tree import (
    ProcessIdentity,
    find_processes,
    identify,
    kill_tree,
    python_environment,
)
from workers.supervisor.trainer_launch import SUPERVISOR_VARIABLE

TRAINER_MODULE: Final = "workers.trainer_process"
COMPILED_VARIABLE: Final = "TORCHINDUCTOR_CACHE_DIR"
"""torch's own: where it keeps compiled code.

A worker's environment may name another place than the worker's own.
"""

_SECRET_NAME: Final = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|API_?KEY|PRIVATE_KEY|ACCESS_KEY", re.IGNORECASE
)
_OWN_NAME: Final = re.compile(r"^(PALESTRA|CELERY)_")
_KEPT_OWN_NAME: Final = re.compile(
    r"^PALESTRA_(TEST_|BENCH_|WORKER_COMPILE$|WORKER_IMPORTS$|WORKER_ALLOWED_PATHS$)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerOptions:
    """The options with which a trainer is started."""

    gpus: tuple[int, ...] = ()
    cpu_threads: int = 1
    simulator: Literal["auto", "registered"] = "auto"
    inherited: tuple[int, ...] = ()
    """Descriptors that the trainer's tree keeps open: the locks of the slots."""
    module: str = TRAINER_MODULE


class TrainerProcess:
    """The trainer of one attempt, and all processes that it starts.

    Raises:
        OSError: If it cannot be started.
    """

    def __init__(
        self, directory: AttemptDirectory, options: TrainerOptions, environ: Mapping[str, str]
    ) -> None:
        self._directory = directory
        self._watchdog_stdin = -1
        self._watchdog = self._start_watchdog(options.inherited)
        read_end, self._control = os.pipe()
        try:
            self._process = self._start(options, environ, read_end)
        finally:
            os.close(read_end)
        self.identity: ProcessIdentity = identify(self._process.pid)
        try:
            write_identity(directory.trainer_pid, self.identity)
        except OSError:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The first process of the trainer, the leader of its session."""
        return self._process.pid

    @property
    def children(self) -> frozenset[int]:
        """The processes that this object reaps."""
        return frozenset({self._process.pid, self._watchdog.pid})

    def poll(self) -> int | None:
        """Returns the exit status once the first process ended, negative for a signal."""
        return self._process.poll()

    def wait(self, seconds: float) -> int | None:
        """Waits at most `seconds` for the end of the first process; `None` if it still runs."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def send(self, order: Order) -> None:
        """Sends an order to the trainer; has no effect if the trainer has ended."""
        with contextlib.suppress(OSError):
            os.write(self._control, f"{order.value}\n".encode())

    def pids(self) -> frozenset[int]:
        """Returns the living processes of the trainer."""
        return frozenset(find_processes(self._directory.mark, self.pid))

    def dump_stacks(self) -> None:
        """Makes the trainer write the stacks of all its threads to its log, which ends it."""
        self.identity.send(signal.SIGABRT)
        self.wait(2.0)

    def kill(self) -> bool:
        """Kills every process of the trainer; false if one is stuck in the kernel."""
        gone = kill_tree(self._directory.mark, self.pid)
        self.wait(1.0)
        return gone

    def close(self) -> None:
        """Kills the remaining processes, then stops the watchdog."""
        self.kill()
        os.close(self._control)
        with contextlib.suppress(OSError):
            os.write(self._watchdog_stdin, b"q")
        os.close(self._watchdog_stdin)
        try:
            self._watchdog.wait(5.0)
        except subprocess.TimeoutExpired:
            self._watchdog.kill()
            self._watchdog.wait()

    def _start_watchdog(self, inherited: tuple[int, ...]) -> subprocess.Popen[bytes]:
        read_end, self._watchdog_stdin = os.pipe()
        root = str(self._directory.root)
        command = build_python_command("workers.supervisor.watchdog", root)
        try:
            return subprocess.Popen(  # noqa: S603 - our own module
                command,
                stdin=read_end,
                pass_fds=inherited,
                start_new_session=True,
                env=python_environment(os.environ),
            )
        finally:
            os.close(read_end)

    def _start(
        self, options: TrainerOptions, environ: Mapping[str, str], control: int
    ) -> subprocess.Popen[bytes]:
        command = build_python_command(
            "workers.supervisor.trainer_launch",
            options.module,
            "--attempt-dir",
            str(self._directory.root),
        )
        with self._directory.trainer_log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - our own module
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._directory.root,
                env=trainer_environment(environ, self._directory, control, options),
                pass_fds=(control, *options.inherited),
                start_new_session=True,
            )


def trainer_environment(
    environ: Mapping[str, str], directory: AttemptDirectory, control: int, options: TrainerOptions
) -> dict[str, str]:
    """Returns the trainer's environment, without credentials.

    Sets the trainer's GPUs and threads, the mark of its attempt, and the folder of compiled code.

    By default torch stores compiled code in a directory of /tmp with a predictable name, where
    other users could place code; a worker's own folder also persists over a restart.
    """
    threads = str(options.cpu_threads)
    kept = {
        name: value
        for name, value in environ.items()
        if not _SECRET_NAME.search(name)
        and (not _OWN_NAME.match(name) or _KEPT_OWN_NAME.match(name))
    }
    return (
        {COMPILED_VARIABLE: str(directory.compiled_code)}
        | python_environment(kept)
        | {
            ATTEMPT_VARIABLE: directory.attempt_id,
            CONTROL_FD_VARIABLE: str(control),
            SUPERVISOR_VARIABLE: str(os.getpid()),
            TRAINER_SIMULATOR: options.simulator,
            "CUDA_VISIBLE_DEVICES": ",".join(map(str, options.gpus)),
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "OMP_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
            "PYTHONUNBUFFERED": "1",
            "PYTHONFAULTHANDLER": "1",
        }
    )
