"""The methods of `palestra.Client` that download the stored files of runs."""

from collections.abc import Iterator
from pathlib import Path

from palestra.client_methods import PAGE_SIZE
from palestra.connection import encode_path_part
from palestra.contract.names import ExportFormat
from palestra.contract.resources import ArtifactKind, ArtifactView
from palestra.downloads import (
    StoredFile,
    choose_snapshot,
    describe_artifact_file,
    list_export_files,
    list_snapshot_files,
    make_safe_name,
    store,
)
from palestra.run_methods import RunMethods


class FileMethods(RunMethods):
    """Stored files of runs: snapshots, exports and others."""

    def artifacts(self, run_id: str, *, kind: ArtifactKind | None = None) -> Iterator[ArtifactView]:
        """Yields a run's stored files, newest first: of one kind, or of all."""
        return self._connection.pages(
            ArtifactView,
            f"/runs/{encode_path_part(run_id)}/artifacts",
            {"kind": kind, "limit": PAGE_SIZE},
        )

    def artifact(self, artifact_id: str) -> ArtifactView:
        """Returns the description of a stored file."""
        return self._connection.get(ArtifactView, f"/artifacts/{encode_path_part(artifact_id)}")

    def download(self, artifact: ArtifactView | str, directory: Path) -> Path:
        """Downloads a stored file below a directory, verifies it and returns its path.

        Size and SHA-256 are compared with what the server recorded.

        Characters of its name that no file name may hold are replaced. An existing file with the
        same content is kept.

        Args:
            artifact: The file, or its id.
            directory: Directory to write to; it is created.

        Raises:
            DownloadError: If the content differs from the stored one, or another file has its path.
        """
        return self._store(
            describe_artifact_file(
                self.artifact(artifact) if isinstance(artifact, str) else artifact
            ),
            directory,
        )

    def download_snapshot(self, run_id: str, directory: Path, *, snapshot: str = "best") -> Path:
        """Downloads and verifies a snapshot into a directory named by its ID below `directory`.

        Returns that directory.

        Args:
            run_id: Run of the snapshot.
            directory: Directory to write to; it is created.
            snapshot: `best`, `newest` or an id.

        Raises:
            DownloadError: If the run has no such snapshot, or a file could not be stored; see
                `download`.
        """
        found = choose_snapshot(run_id, self.snapshots(run_id), snapshot)
        place = directory / make_safe_name(found.id)
        for file in list_snapshot_files(found):
            self._store(file, place)
        return place

    def download_export(
        self,
        run_id: str,
        directory: Path,
        *,
        format: ExportFormat = "weights",  # noqa: A002 - the API's word
    ) -> list[Path]:
        """Downloads the newest export of a run in a format; returns its files.

        Raises:
            DownloadError: If the run has none, or a file could not be stored; see `download`.
        """
        files = list_export_files(run_id, self.artifacts(run_id, kind="export"), format)
        return [self._store(file, directory) for file in files]

    def _store(self, file: StoredFile, directory: Path) -> Path:
        path = f"/artifacts/{encode_path_part(file.artifact_id)}/content"
        return store(file, directory, lambda offset: self._connection.content(path, offset))
