"""Uploads what a trainer wrote: the files of every snapshot that the spool names, videos as they come, and exports at the end."""

import hashlib
import re
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from palestra.contract.resources import ArtifactDeclaration, ArtifactKind
from palestra.contract.telemetry import Note, SnapshotFile, SnapshotWritten
from palestra.telemetry.spool import SpoolReader, SpoolWriter
from workers.machine.agent_api import AttemptApi, RefusedError
from workers.machine.attempts import AttemptDirectory

_SNAPSHOT_MARK: Final = b'"snapshot_id"'
_READ_RECORDS: Final = 5_000
_CONFLICT: Final = 409
_VIDEO: Final = re.compile(r"^([0-9]{12})-[A-Za-z0-9_-]+\.(mp4|jpg)$")
"""Begins with the env_step at which it was made."""


class Uploader:
    """Uploads the snapshots of one attempt in order, each once its record is acknowledged.

    Args:
        api: Calls with the attempt's token.
        directory: Where the trainer writes.
        writer: Takes notes about what could not be uploaded.
        report: Told what was left out.
    """

    def __init__(self, api: AttemptApi, directory: AttemptDirectory, writer: SpoolWriter, report: Callable[[str], None]) -> None:
        self._api = api
        self._directory = directory
        self._writer = writer
        self._report = report
        self._reader = SpoolReader(directory.spool)
        self._waiting: deque[SnapshotWritten] = deque()
        self._videos: set[Path] = set()

    def step(self, acked_seq: int) -> bool:
        """Uploads the oldest waiting snapshot; false if none waits.

        Raises:
            UnreachableError: The same snapshot is tried again at the next step.
            RefusedError: If the attempt may not write any more.
        """
        self._collect(acked_seq)
        if not self._waiting:
            return False
        snapshot = self._waiting[0]
        root = self._directory.snapshots / snapshot.snapshot_id
        for file in snapshot.files:
            if not self._upload(snapshot.run, root / file.name, file, "snapshot", snapshot_id=snapshot.snapshot_id):
                break
        self._waiting.popleft()
        return True

    def upload_videos(self) -> None:
        """Uploads every new video and poster below `videos/<run id>/`; one that is being written has another name.

        Raises:
            UnreachableError: Call it again; what is stored already is not sent twice.
            RefusedError: If the attempt may not write any more.
        """
        for path in sorted(set(self._directory.videos.glob("*/*")) - self._videos):
            made_at = _VIDEO.match(path.name)
            if made_at and path.is_file() and not path.is_symlink():
                self._upload(path.parent.name, path, describe(path), "video", env_step=int(made_at[1]))
                self._videos.add(path)

    def upload_exports(self) -> None:
        """Uploads every file below `exports/<run id>/`.

        Raises:
            UnreachableError: Call it again; what is stored already is not sent twice.
            RefusedError: If the attempt may not write any more.
        """
        for path in sorted(self._directory.exports.glob("*/*")):
            if path.is_file() and not path.is_symlink():
                self._upload(path.parent.name, path, describe(path), "export")

    def _collect(self, acked_seq: int) -> None:
        while self._reader.position < acked_seq:
            payloads = self._reader.read(min(_READ_RECORDS, acked_seq - self._reader.position)).payloads
            if not payloads:
                return
            for payload in payloads:
                if _SNAPSHOT_MARK in payload and b'"type":"snapshot"' in payload:
                    self._waiting.append(SnapshotWritten.model_validate_json(payload))

    def _upload(self, run: str, path: Path, file: SnapshotFile, kind: ArtifactKind, **place: Any) -> bool:
        """Uploads one file; false where it cannot be, for good. `place` is its `snapshot_id` or `env_step`."""
        declaration = ArtifactDeclaration(run_id=run, name=file.name, kind=kind, size=file.size, sha256=file.sha256, **place)
        try:
            if not path.is_file():
                self._report(f"{kind} file {path.name} is gone: a newer snapshot took its place")
                return False
            artifact = self._api.declare(declaration)
            if not artifact.stored:
                self._api.upload(artifact.id, path)
        except FileNotFoundError:
            self._report(f"{kind} file {path.name} went away while it was uploaded")
            return False
        except RefusedError as refusal:
            return self._on_refusal(refusal, run, path)
        return True

    def _on_refusal(self, refusal: RefusedError, run: str, path: Path) -> bool:
        if refusal.ends_attempt:
            raise refusal
        if refusal.status == _CONFLICT:
            return True
        self._report(f"{path.name} was refused: {refusal}")
        message = f"{path.name} could not be uploaded: {refusal}"[:2_000]
        self._writer.append([Note(run=run, wall=time.time(), code="upload_refused", message=message)])
        return False


def describe(path: Path) -> SnapshotFile:
    """Returns name, size and SHA-256 of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return SnapshotFile(name=path.name, size=path.stat().st_size, sha256=digest)
