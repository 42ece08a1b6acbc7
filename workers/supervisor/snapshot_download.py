"""Downloads the snapshots that an attempt starts from, before its trainer starts."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from palestra.backoff import Backoff
from palestra.contract.states import Cause
from palestra.contract.work_order import SnapshotFileRef, SnapshotRef, WorkOrder
from workers.ipc.attempt_directory import AttemptDirectory
from workers.ipc.full_disk import is_full_error
from workers.ipc.server_api import AttemptApi, DamagedError, RefusedError, ServerUnreachableError

_MAX_DAMAGED: Final = 5
_MAX_WAIT_SECONDS: Final = 5.0


class InputError(Exception):
    """The attempt cannot start; the message is a sentence that a user can act on."""

    def __init__(self, cause: Cause, message: str) -> None:
        super().__init__(message)
        self.cause = cause


def fetch_inputs(
    api: AttemptApi,
    directory: AttemptDirectory,
    order: WorkOrder,
    is_interrupted: Callable[[], bool],
) -> None:
    """Downloads every snapshot of the work order to `inputs/<snapshot id>/` and verifies it.

    Retries while the server is unreachable.

    Args:
        api: Calls with the attempt's token.
        directory: Directory of the attempt.
        order: Names the snapshots.
        is_interrupted: Called between retries; if it returns true, the function returns.

    Raises:
        InputError: If a snapshot cannot be downloaded or stored.
    """
    snapshots = {
        run.snapshot.snapshot_id: run.snapshot for run in order.runs if run.snapshot is not None
    }
    for snapshot in snapshots.values():
        fetch_snapshot(api, directory.inputs / snapshot.snapshot_id, snapshot, is_interrupted)


def fetch_snapshot(
    api: AttemptApi, target: Path, snapshot: SnapshotRef, is_interrupted: Callable[[], bool]
) -> None:
    """Downloads one snapshot into the directory `target`; see `fetch_inputs`."""
    for file in snapshot.files:
        try:
            (target / file.name).parent.mkdir(parents=True, exist_ok=True)
            _fetch_file(api, target / file.name, file, is_interrupted)
        except DamagedError as error:
            raise InputError(
                Cause.NO_RESULT,
                f"The snapshot {snapshot.snapshot_id} is damaged on the server: {error}.",
            ) from error
        except RefusedError as error:
            raise InputError(
                Cause.NO_RESULT,
                f"The snapshot {snapshot.snapshot_id} cannot be downloaded: {error}.",
            ) from error
        except OSError as error:
            if not is_full_error(error):
                raise
            raise InputError(
                Cause.DISK_FULL,
                f"The worker's disk has no room for the snapshot {snapshot.snapshot_id}.",
            ) from error


def _fetch_file(
    api: AttemptApi, target: Path, file: SnapshotFileRef, is_interrupted: Callable[[], bool]
) -> None:
    backoff, damaged = Backoff(threading.Event(), longest=_MAX_WAIT_SECONDS), 0
    while not is_interrupted():
        try:
            api.download(file, target)
        except DamagedError:
            damaged += 1
            if damaged >= _MAX_DAMAGED:
                raise
            backoff.wait()
        except ServerUnreachableError as error:
            backoff.wait(error.wait)
        else:
            return
