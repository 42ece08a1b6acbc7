"""The command that exports what runs recorded: `palestra export-records`."""

from pathlib import Path
from typing import Annotated, Final, cast, get_args

import typer

from palestra.cli.new_files import STDOUT, open_new_file
from palestra.cli.output import emit_json, fail_usage, say
from palestra.cli.request_documents import read_request
from palestra.cli.server_address import Json, Project, Server, TokenFile, connect
from palestra.cli.sizes import format_bytes
from palestra.contract.queries import CurveAxis
from palestra.contract.record_exports import RecordFormat, RecordKind, RecordQuery
from palestra.contract.views import FieldProblem

_KINDS: Final = get_args(RecordKind)
_FORMATS: Final = get_args(RecordFormat)
_ENDINGS: Final[dict[str, RecordFormat]] = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
}
_OPTIONS: Final = {"runs": "TARGET", "experiments": "TARGET", "columns": "--column"}

Targets = Annotated[
    list[str], typer.Argument(metavar="RUN|EXPERIMENT...", help="IDs of runs and experiments.")
]
File = Annotated[
    Path,
    typer.Option("--file", metavar="FILE", help="Must not exist yet; - is standard output."),
]
Kind = Annotated[str, typer.Option(metavar="|".join(_KINDS), help="What to export.")]
Form = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="|".join(_FORMATS), help="By default from the name of the file, or csv."
    ),
]
Names = Annotated[
    list[str] | None, typer.Option("--series", help="Only this series; may be given several times.")
]
Columns = Annotated[
    list[str] | None, typer.Option("--column", help="Only this column; may be given several times.")
]
X = Annotated[
    str, typer.Option(metavar="|".join(get_args(CurveAxis)), help="Axis of --start and --end.")
]
Start = Annotated[float | None, typer.Option(help="Only rows from there on.")]
End = Annotated[float | None, typer.Option(help="Only rows up to there.")]
Superseded = Annotated[
    bool, typer.Option("--superseded", help="Also what later attempts superseded.")
]


def register(app: typer.Typer) -> None:
    """Adds the command to a group."""
    app.command("export-records")(export_records)


def export_records(
    targets: Targets,
    file: File = STDOUT,
    kind: Kind = "points",
    form: Form = None,
    series: Names = None,
    column: Columns = None,
    x: X = "env_step",
    start: Start = None,
    end: End = None,
    superseded: Superseded = False,
    project: Project = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Writes all points, episodes, evaluations or epochs of runs and experiments to a file."""
    chosen = _choose_format(form, file)
    query = read_request(
        RecordQuery,
        {
            "kind": kind,
            "runs": [one for one in targets if one.startswith("run_")],
            "experiments": [one for one in targets if not one.startswith("run_")],
            "series": series or [],
            "columns": column or [],
            "x": x,
            "start": start,
            "end": end,
            "superseded": superseded,
        },
        _describe_fault,
    )
    size = 0
    with connect(server, token_file, project) as client:
        pieces = client.export_records(query, format=chosen)
        first = next(pieces, b"")  # what the server refuses leaves no file
        with open_new_file(file) as target:
            target.write(first)
            size += len(first)
            for piece in pieces:
                target.write(piece)
                size += len(piece)
    if file != STDOUT:
        written = {"bytes": size, "path": str(file.absolute())}
        emit_json(written) if json else say(f"{format_bytes(size)} in {file}")


def _choose_format(form: str | None, file: Path) -> RecordFormat:
    if form is None:
        return _ENDINGS.get(file.suffix.lower(), "csv")
    if form not in _FORMATS:
        fail_usage(f"--format {form!r}: give one of {', '.join(_FORMATS)}")
    return cast("RecordFormat", form)


def _describe_fault(fault: FieldProblem) -> str:
    name = fault.pointer.removeprefix("/").partition("/")[0]
    return f"{_OPTIONS.get(name, f'--{name}')}: {fault.message}"
