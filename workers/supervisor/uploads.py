"""Uploads a trainer's files: snapshots and videos while it runs, and exports at the end.

An upload is retried until it succeeds or the server refuses it permanently; the file is then kept
on this machine.
"""

import errno
import hashlib
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Final, TypeVar

from palestra.contract.resources import ArtifactDeclaration, ArtifactKind
from palestra.contract.telemetry import Note, SnapshotFile, SnapshotWritten
from palestra.contract.work_order import Backlog
from palestra.telemetry.spool import SpoolReader, SpoolWriter
from workers.ipc.attempt_directory import AttemptDirectory
from workers.ipc.full_disk import is_full_error
from workers.ipc.server_api import AttemptApi, RefusedError, ServerUnreachableError
from workers.supervisor.missing_results import MissingResults
from workers.supervisor.snapshot_backlog import SnapshotBacklog

_SNAPSHOT_MARK: Final = b'"snapshot_id"'
_READ_RECORDS: Final = 5_000
_STORED: Final = "already_stored"
_UNWANTED: Final = frozenset({"snapshot_deleted", "snapshot_skipped"})
"""Problem codes for a snapshot that newer ones have replaced."""
_DAMAGED: Final = frozenset({"size_mismatch", "hash_mismatch"})
_NOT_FOUND: Final = 404
_STATUS: Final = re.compile(r"^[0-9]{3} ")
"""Pattern of the status that precedes the server's message in the text of an error."""
_VIDEO: Final = re.compile(r"^([0-9]{12})-[A-Za-z0-9_-]+\.(mp4|jpg)$")
"""Pattern of a video's name, which begins with its env_step."""


Item = TypeVar("Item")


class UploadResult(Enum):
    """How an upload ended: stored, replaced by newer files, or refused permanently."""

    STORED = "stored"
    UNWANTED = "unwanted"
    REFUSED = "refused"


class Uploader:
    """Uploads the results of one attempt.

    The order is defined by `workers.supervisor.snapshot_backlog`. Thread-safe.

    Args:
        api: API client with the attempt's token.
        directory: Directory of the attempt.
        writer: Receives notes about files that could not be uploaded.
        report: Called with a message for each file that is skipped.
    """

    def __init__(
        self,
        api: AttemptApi,
        directory: AttemptDirectory,
        writer: SpoolWriter,
        report: Callable[[str], None],
    ) -> None:
        self._api = api
        self._directory = directory
        self._writer = writer
        self._report = report
        self._reader = SpoolReader(directory.spool)
        self._waiting = SnapshotBacklog()
        self._current: SnapshotWritten | None = None
        """The snapshot whose upload has begun; it is completed before another one is selected."""
        self._done: set[Path] = set()
        """Files that are sent or discarded: those of the current snapshot, videos and exports.
        """
        self._lock = threading.RLock()
        self.missing = MissingResults()
        self.backlog = Backlog()
        """Files left to upload, as of the latest step; replaced atomically, for other threads."""

    def step(self, acked_seq: int) -> bool:
        """Uploads one snapshot whose record is acknowledged, or one video if no snapshot waits.

        Returns `False` if neither waits.

        Raises:
            ServerUnreachableError: If the server is unreachable. The next step tries the same
                upload again and skips files that are stored already.
            RefusedError: If the attempt may no longer write.
        """
        with self._lock:
            self._collect(acked_seq)
            self._waiting.keep_only(self._is_there)
            self._current = self._current or self._waiting.next()
            if self._current is not None:
                return self._try_to_send(self._send_snapshot, self._current)
            video = next(self._videos(), None)
            return video is not None and self._try_to_send(self._send_video, video)

    def deliver(self, acked_seq: int) -> None:
        """Uploads all remaining files, including exports.

        Raises:
            ServerUnreachableError: If the server is unreachable; call it again.
            RefusedError: If the attempt may no longer write.
        """
        while self.step(acked_seq):
            pass
        with self._lock:
            for path in self._exports():
                self._try_to_send(self._send_export, path)

    def discard_all(self) -> None:
        """Discards all files that are not uploaded yet, at a user's request."""
        with self._lock:
            for snapshot in list(self._waiting):
                self.missing.record_missing_snapshot(snapshot, "given up by a person")
                self._waiting.settle(snapshot, is_stored=False)
            for path in self._exports():
                self.missing.record_missing_export(
                    path.parent.name, path.name, "given up by a person"
                )
                self._done.add(path)
            self._done.update(path for path in self._videos())
            self._current = None
            self._update_backlog(None)

    def _try_to_send(self, send: Callable[[Item], None], item: Item) -> bool:
        """Sends an item and updates `backlog`, with the error if the server was unreachable."""
        problem: str | None = None
        try:
            send(item)
        except ServerUnreachableError as error:
            problem = _STATUS.sub("", str(error))
            raise
        finally:
            self._update_backlog(problem)
        return True

    def _collect(self, acked_seq: int) -> None:
        while self._reader.position < acked_seq:
            payloads = self._reader.read(
                min(_READ_RECORDS, acked_seq - self._reader.position)
            ).payloads
            if not payloads:
                return
            for payload in payloads:
                if _SNAPSHOT_MARK in payload and b'"type":"snapshot"' in payload:
                    self._waiting.add(SnapshotWritten.model_validate_json(payload))

    def _is_there(self, snapshot: SnapshotWritten) -> bool:
        places = (self._directory.snapshots, self._directory.outgoing)
        return any((place / snapshot.snapshot_id).is_dir() for place in places)

    def _send_snapshot(self, snapshot: SnapshotWritten) -> None:
        root = self._hold(snapshot)
        if root is None:
            self._report(f"snapshot {snapshot.snapshot_id} is gone: a newer one took its place")
        self._settle(
            snapshot, UploadResult.UNWANTED if root is None else self._send_files(snapshot, root)
        )

    def _send_files(self, snapshot: SnapshotWritten, root: Path) -> UploadResult:
        for file in snapshot.files:
            sent = self._send(
                snapshot.run, root / file.name, file, "snapshot", snapshot_id=snapshot.snapshot_id
            )
            if sent is not UploadResult.STORED:
                return sent
        return UploadResult.STORED

    def _settle(self, snapshot: SnapshotWritten, sent: UploadResult) -> None:
        if sent is UploadResult.STORED:
            self.missing.record_stored(snapshot)
        self._waiting.settle(snapshot, is_stored=sent is UploadResult.STORED)
        self._current = None
        held = self._directory.outgoing / snapshot.snapshot_id
        self._done = {path for path in self._done if held not in path.parents}
        shutil.rmtree(held, ignore_errors=True)

    def _hold(self, snapshot: SnapshotWritten) -> Path | None:
        """Returns a directory with the snapshot's files that the trainer does not delete.

        `None` if the trainer has deleted them already.

        The files are hard links, which use no additional space. Where the file system has none, it
        is the trainer's own directory.
        """
        held, source = (
            self._directory.outgoing / snapshot.snapshot_id,
            self._directory.snapshots / snapshot.snapshot_id,
        )
        if held.is_dir():
            return held
        partial = held.with_name(f"{held.name}.tmp")
        shutil.rmtree(partial, ignore_errors=True)
        try:
            for file in snapshot.files:
                (partial / file.name).parent.mkdir(parents=True, exist_ok=True)
                os.link(source / file.name, partial / file.name)
            partial.rename(held)
        except FileNotFoundError:
            shutil.rmtree(partial, ignore_errors=True)
            return None
        except OSError as error:
            shutil.rmtree(partial, ignore_errors=True)
            if not is_full_error(error) and error.errno not in {
                errno.EPERM,
                errno.EOPNOTSUPP,
                errno.EXDEV,
                errno.EMLINK,
            }:
                raise
            return source if source.is_dir() else None
        return held

    def _videos(self) -> Iterator[Path]:
        for path in sorted(self._directory.videos.glob("*/*")):
            if (
                path not in self._done
                and _VIDEO.match(path.name)
                and path.is_file()
                and not path.is_symlink()
            ):
                yield path

    def _send_video(self, path: Path) -> None:
        made_at = _VIDEO.match(path.name)
        assert made_at is not None
        self._send(path.parent.name, path, describe(path), "video", env_step=int(made_at[1]))
        self._done.add(path)

    def _exports(self) -> list[Path]:
        found = sorted(self._directory.exports.glob("*/*"))
        return [
            path
            for path in found
            if path not in self._done and path.is_file() and not path.is_symlink()
        ]

    def _send_export(self, path: Path) -> None:
        self._send(path.parent.name, path, describe(path), "export")
        self._done.add(path)

    def _send(
        self, run: str, path: Path, file: SnapshotFile, kind: ArtifactKind, **place: Any
    ) -> UploadResult:
        """Uploads one file. `place` is its `snapshot_id` or `env_step`."""
        if path in self._done:
            return UploadResult.STORED
        declaration = ArtifactDeclaration(
            run_id=run, name=file.name, kind=kind, size=file.size, sha256=file.sha256, **place
        )
        try:
            artifact = self._api.declare(declaration)
            if not artifact.stored:
                self._api.upload(artifact.id, path)
        except FileNotFoundError:
            self._report(f"{kind} file {path.name} went away while it was uploaded")
            return UploadResult.UNWANTED
        except RefusedError as refusal:
            return self._on_refusal(refusal, declaration, path)
        self._done.add(path)
        return UploadResult.STORED

    def _on_refusal(
        self, refusal: RefusedError, declared: ArtifactDeclaration, path: Path
    ) -> UploadResult:
        if refusal.ends_attempt:
            raise refusal
        if refusal.code == _STORED:
            return UploadResult.STORED
        if refusal.code in _UNWANTED:
            self._report(f"{path.name} is not wanted any more: {refusal}")
            return UploadResult.UNWANTED
        if self._may_succeed_later(refusal, declared, path):
            raise ServerUnreachableError(str(refusal))
        self._keep_refused(refusal, declared, path)
        return UploadResult.REFUSED

    def _may_succeed_later(
        self, refusal: RefusedError, declared: ArtifactDeclaration, path: Path
    ) -> bool:
        """Returns whether a retry can succeed after a refusal.

        It can if the artifact was deleted in between, or the content was damaged in transit.
        """
        if refusal.status == _NOT_FOUND and declared.snapshot_id is not None:
            return True
        return refusal.code in _DAMAGED and describe(path).sha256 == declared.sha256

    def _keep_refused(
        self, refusal: RefusedError, declared: ArtifactDeclaration, path: Path
    ) -> None:
        """Keeps the local copy of a refused file, and adds a note to the run."""
        kept = (
            self._directory.kept
            / declared.run_id
            / (declared.snapshot_id or declared.kind)
            / declared.name
        )
        try:
            kept.parent.mkdir(parents=True, exist_ok=True)
            os.link(path, kept)
        except OSError as error:
            self._report(f"{path.name} could not be kept: {error}")
        message = (
            f"{path.name} could not be uploaded: {refusal} Its copy stays on the worker: {kept}"
        )
        self._report(message)
        self._note(declared.run_id, "upload_refused", message)
        if declared.kind == "export":
            self.missing.record_missing_export(declared.run_id, declared.name, str(refusal))
        elif declared.kind == "snapshot" and self._current is not None:
            self.missing.record_missing_snapshot(self._current, str(refusal))

    def _note(self, run: str, code: str, message: str) -> None:
        try:
            self._writer.append(
                [Note(run=run, wall=time.time(), code=code, message=message[:2_000])]
            )
        except OSError as error:
            if not is_full_error(error):
                raise
            self._report(f"no room for the note {code}: {message}")

    def _update_backlog(self, problem: str | None) -> None:
        """Updates `backlog`."""
        sizes = [
            file.size
            for snapshot in self._waiting
            for file in snapshot.files
            if not self._is_sent(snapshot, file)
        ]
        sizes += [_size(path) for path in (*self._videos(), *self._exports())]
        self.backlog = Backlog(
            files=len(sizes), size=sum(sizes), problem=None if problem is None else problem[:1_000]
        )

    def _is_sent(self, snapshot: SnapshotWritten, file: SnapshotFile) -> bool:
        return self._directory.outgoing / snapshot.snapshot_id / file.name in self._done


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def describe(path: Path) -> SnapshotFile:
    """Returns name, size and SHA-256 of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return SnapshotFile(name=path.name, size=path.stat().st_size, sha256=digest)
