"""The attempt directory: the files that Celery task, supervisor and trainer exchange.

Imports little, because the watchdog uses it.

`<state>/attempts/<attempt id>/` holds

    work_order.json    the WorkOrder; written by the task, read by supervisor and trainer
    inputs/<snapshot id>/<file>
                       snapshots to load: downloaded and verified before the trainer starts, or
                       when it asks for one
    snapshots/<snapshot id>/<file>
                       written by the trainer; every `SnapshotWritten` record names files in here
    outgoing/<snapshot id>/<file>
                       the snapshot that is being uploaded: hard links, which remain when the
                       trainer deletes its own files
    kept/              results that the server refused permanently, for a user: the only copies
    exports/<run id>/<file>
                       written by the trainer; uploaded at the end
    spool/             telemetry (`palestra.telemetry.spool`), appended by trainer and supervisor
    progress.json      trainer, atomically, about once a second: {"env_step", "update", "episode"};
                       in a training also {"compile", "compiling"}, how updates run and whether
                       one is being compiled;
                       in a continuous evaluation also {"evaluations", "looks", "waiting"}
    snapshot_request.json
                       trainer of a continuous evaluation, atomically: requests the next snapshot
                       (`workers.ipc.snapshot_requests`)
    snapshot_answer.json
                       supervisor, atomically: the answer
    report.json        trainer, atomically, last: an AttemptReport
    trainer.log        stdout and stderr of the trainer
    supervisor.log     the supervisor's own log
    supervisor.pid     the supervisor's process: {"pid", "start_ticks", "boot_id"}
    trainer.pid        the trainer's first process, the leader of its session
    ending.json        supervisor, atomically: the AttemptReport, once only results are left to
                       be uploaded
    released           present once the server knows the end
    reported_dead      present once the server knows that the supervisor died

Orders reach the trainer through a pipe whose descriptor is in the variable `PALESTRA_CONTROL_FD`:
one word of `Order` per line (`pause`, `cancel`, `drain`), each meaning "save and end". The end of
the pipe means that the supervisor is gone: the trainer ends at once.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from workers.ipc.process_tree import ProcessIdentity

CONTROL_FD_VARIABLE: Final = "PALESTRA_CONTROL_FD"
ATTEMPT_VARIABLE: Final = "PALESTRA_ATTEMPT_ID"
"""Environment variable of the trainer and all its subprocesses, by which they are found."""


@dataclass(frozen=True, slots=True)
class AttemptDirectory:
    """The paths of the files of one attempt."""

    root: Path

    @property
    def attempt_id(self) -> str:
        """The attempt's ID, which is the name of the directory."""
        return self.root.name

    @property
    def compiled_code(self) -> Path:
        """Folder of compiled code, which all trainers of this worker share."""
        return self.root.parents[1] / "compiled"

    @property
    def work_order(self) -> Path:
        return self.root / "work_order.json"

    @property
    def inputs(self) -> Path:
        return self.root / "inputs"

    @property
    def snapshots(self) -> Path:
        return self.root / "snapshots"

    @property
    def outgoing(self) -> Path:
        return self.root / "outgoing"

    @property
    def kept(self) -> Path:
        return self.root / "kept"

    @property
    def ending(self) -> Path:
        return self.root / "ending.json"

    @property
    def exports(self) -> Path:
        return self.root / "exports"

    @property
    def videos(self) -> Path:
        return self.root / "videos"

    @property
    def spool(self) -> Path:
        return self.root / "spool"

    @property
    def progress(self) -> Path:
        return self.root / "progress.json"

    @property
    def snapshot_request(self) -> Path:
        return self.root / "snapshot_request.json"

    @property
    def snapshot_answer(self) -> Path:
        return self.root / "snapshot_answer.json"

    @property
    def report(self) -> Path:
        return self.root / "report.json"

    @property
    def trainer_log(self) -> Path:
        return self.root / "trainer.log"

    @property
    def supervisor_log(self) -> Path:
        return self.root / "supervisor.log"

    @property
    def supervisor_pid(self) -> Path:
        return self.root / "supervisor.pid"

    @property
    def trainer_pid(self) -> Path:
        return self.root / "trainer.pid"

    @property
    def trainer_started(self) -> Path:
        """Exists once the trainer has imported its modules: what fails later is the job's."""
        return self.root / "trainer_started"

    @property
    def released(self) -> Path:
        return self.root / "released"

    @property
    def reported_dead(self) -> Path:
        return self.root / "reported_dead"

    @property
    def mark(self) -> str:
        """The mark of the attempt: an environment variable of all its processes."""
        return f"{ATTEMPT_VARIABLE}={self.attempt_id}"

    def create(self, work_order: bytes) -> None:
        """Makes the directory with the work order (JSON) in it.

        Raises:
            FileExistsError: If the attempt was started on this machine before.
        """
        self.root.mkdir(parents=True)
        for directory in (self.inputs, self.snapshots, self.exports, self.videos, self.spool):
            directory.mkdir()
        write_atomically(self.work_order, work_order)

    def clear_blobs(self) -> None:
        """Deletes the files that the server has stored: inputs, snapshots, exports and videos.

        Keeps the spool, the logs, and files that the server refused permanently (`kept`).
        """
        for directory in (self.inputs, self.snapshots, self.outgoing, self.exports, self.videos):
            shutil.rmtree(directory, ignore_errors=True)

    def has_ended(self) -> bool:
        """Whether the trainer has ended, so that only results may remain to be uploaded."""
        return self.ending.exists() or self.report.exists()

    def supervisor(self) -> ProcessIdentity | None:
        """Returns the supervisor's process, running or not; `None` before it wrote its PID file."""
        return read_identity(self.supervisor_pid)

    def trainer(self) -> ProcessIdentity | None:
        """Returns the trainer's first process, running or not; `None` before its start."""
        return read_identity(self.trainer_pid)


def attempts_under(state_directory: Path) -> Iterator[AttemptDirectory]:
    """Yields the attempt directories of a state directory, oldest first."""
    root = state_directory / "attempts"
    if root.is_dir():
        yield from (
            AttemptDirectory(path)
            for path in sorted(root.iterdir())
            if path.name.startswith("att_")
        )


def write_identity(path: Path, identity: ProcessIdentity) -> None:
    """Writes a pid file."""
    write_atomically(path, json.dumps(asdict(identity)).encode())


def read_identity(path: Path) -> ProcessIdentity | None:
    """Returns the process that a pid file names; `None` if there is no readable file."""
    document = read_json(path)
    try:
        return ProcessIdentity(
            int(document["pid"]), int(document["start_ticks"]), str(document["boot_id"])
        )
    except (KeyError, TypeError, ValueError):
        return None


def read_json(path: Path) -> dict[str, Any]:
    """Returns the JSON object in a file; an empty one if there is no readable file."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def write_atomically(path: Path, data: bytes) -> None:
    """Replaces a file so that a reader sees the old content or the new one."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
