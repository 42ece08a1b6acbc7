"""Commands that list and download the files of a run: `palestra artifacts | download`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, cast

import typer
from rich.table import Table

from palestra.cli.output import (
    build_table,
    emit_json,
    fail_usage,
    remove_control_characters,
    say,
    show,
)
from palestra.cli.server_address import Json, Server, TokenFile, connect
from palestra.client import Client
from palestra.contract.names import ExportFormat
from palestra.contract.resources import ArtifactKind, ArtifactView

_KINDS: Final = ("snapshot", "export", "video", "log", "other")
_FORMATS: Final = ("weights", "program", "onnx")

SnapshotOption = Annotated[
    str | None,
    typer.Option(
        "--snapshot",
        metavar="best|newest|ID",
        help="The best by default, or the newest where none has a score.",
    ),
]
Run = Annotated[str, typer.Argument(metavar="RUN")]


def register(app: typer.Typer) -> None:
    """Adds the commands of this module to a group."""
    app.command()(artifacts)
    app.command()(download)


def artifacts(
    run: Run,
    kind: Annotated[
        str | None, typer.Option(metavar="|".join(_KINDS), help="Only files of this kind.")
    ] = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Lists the files of a run: files of snapshots, exports and videos."""
    if kind is not None and kind not in _KINDS:
        fail_usage(f"--kind {kind!r}: give one of {', '.join(_KINDS)}")
    with connect(server, token_file) as client:
        rows = list(client.artifacts(run, kind=cast("ArtifactKind | None", kind)))
    emit_json(rows) if json else show(build_artifact_table(rows))


def build_artifact_table(rows: Sequence[ArtifactView]) -> Table:
    """Returns a table of stored files."""
    cells = [
        (
            row.id,
            row.kind,
            remove_control_characters(row.name),
            f"{row.size:,}",
            "yes" if row.stored else "not yet",
            row.snapshot_id or "",
            f"{row.created_at:%Y-%m-%d %H:%M}",
        )
        for row in rows
    ]
    return build_table(
        ("artifact", "kind", "name", "bytes", "stored", "snapshot", "created"),
        cells,
        numbers=("bytes",),
    )


def download(
    run: Run,
    snapshot: SnapshotOption = None,
    export: Annotated[
        str | None,
        typer.Option(metavar="|".join(_FORMATS), help="The newest export in this format instead."),
    ] = None,
    artifact: Annotated[
        str | None, typer.Option(metavar="ID", help="One file of `palestra artifacts` instead.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="Directory; by default one named like the run."),
    ] = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Downloads a snapshot, an export or one file of a run, checked against its SHA-256."""
    if sum(choice is not None for choice in (snapshot, export, artifact)) > 1:
        fail_usage("--snapshot, --export and --artifact exclude each other: give one")
    if export is not None and export not in _FORMATS:
        fail_usage(f"--export {export!r}: give one of {', '.join(_FORMATS)}")
    directory = output or Path(run)
    with connect(server, token_file) as client:
        if export is not None:
            paths = client.download_export(run, directory, format=cast("ExportFormat", export))
        elif artifact is not None:
            paths = [client.download(artifact, directory)]
        else:
            paths = [
                client.download_snapshot(
                    run, directory, snapshot=snapshot or choose_best_or_newest(client, run)
                )
            ]
    if json:
        emit_json({"paths": [str(path.absolute()) for path in paths]})
    for path in () if json else paths:
        say(str(path))


def choose_best_or_newest(client: Client, run: str) -> str:
    """Returns the default snapshot for commands: the best one, else the newest one."""
    return "best" if any(row.best for row in client.snapshots(run)) else "newest"
