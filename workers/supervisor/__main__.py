"""The supervisor process: detaches, reads its credentials and supervises one attempt.

It confirms its start with a byte on the pipe `--ready-fd`.

    python -m workers.supervisor --attempt-dir DIR [--ready-fd N] [--slot-fd N]... [--gpus 0,1]

The credentials come as one JSON object on standard input: {"server", "token", "renew_seconds"}. The
process outlives the worker that started it and has no torch, no broker and no database. If it is
killed with SIGKILL, the kernel kills the trainer too. SIGTERM drains: the trainer
saves and ends, and the job returns to the queue.
"""

import argparse
import json
import os
import signal
import sys
from pathlib import Path
from typing import Final

from palestra.contract.work_order import WorkOrder
from workers.ipc.attempt_directory import AttemptDirectory, write_identity
from workers.ipc.credentials import Credentials
from workers.ipc.json_log import configure, get_logger
from workers.ipc.process_tree import adopt_orphans, identify
from workers.supervisor.attempt import Supervision
from workers.supervisor.trainer_handle import TRAINER_MODULE, TrainerOptions

READY: Final = b"ready\n"


def main() -> int:
    """Runs the supervisor."""
    arguments = _parse()
    directory = AttemptDirectory(arguments.attempt_dir)
    credentials = Credentials(**json.loads(sys.stdin.buffer.read()))
    _detach(directory)
    configure()
    log = get_logger(attempt_id=directory.attempt_id)
    adopt_orphans()
    supervision = Supervision(directory, credentials, _options(directory, arguments), log)
    signal.signal(signal.SIGTERM, supervision.on_terminate)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    write_identity(directory.supervisor_pid, identify(os.getpid()))
    _confirm(arguments.ready_fd)
    try:
        supervision.run()
    except Exception:
        log.exception("supervisor.failed")
        return 1
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m workers.supervisor")
    parser.add_argument("--attempt-dir", type=Path, required=True)
    parser.add_argument(
        "--ready-fd", type=int, help="descriptor that gets a line once the attempt is in good hands"
    )
    parser.add_argument(
        "--slot-fd",
        type=int,
        action="append",
        default=[],
        help="descriptor of a slot's lock, inherited by the trainer; once for each slot",
    )
    parser.add_argument(
        "--gpus", type=_indices, default=(), help="GPUs of the slots, for example 0,1"
    )
    parser.add_argument("--trainer-module", default=TRAINER_MODULE, help=argparse.SUPPRESS)
    return parser.parse_args()


def _indices(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)


def _options(directory: AttemptDirectory, arguments: argparse.Namespace) -> TrainerOptions:
    resources = WorkOrder.model_validate_json(directory.work_order.read_bytes()).resources
    return TrainerOptions(
        gpus=arguments.gpus[: resources.gpus],
        cpu_threads=resources.cpu_threads,
        simulator=resources.simulator,
        inherited=tuple(arguments.slot_fd),
        module=arguments.trainer_module,
    )


def _detach(directory: AttemptDirectory) -> None:
    """Becomes a child of init, so that no other process has to reap it.

    Standard output is redirected to the supervisor's log.
    """
    if os.fork() != 0:
        os._exit(0)
    log = os.open(directory.supervisor_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(log)
    os.close(null)


def _confirm(ready: int | None) -> None:
    if ready is not None:
        os.write(ready, READY)
        os.close(ready)


if __name__ == "__main__":
    sys.exit(main())
