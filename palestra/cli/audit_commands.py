"""Commands of the audit log: `palestra audit list | export | verify`."""

from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from palestra.cli.exec_commands import RAW, names_place, run_admin
from palestra.cli.new_files import STDOUT, open_new_file
from palestra.cli.output import (
    build_table,
    emit_json,
    fail_usage,
    remove_control_characters,
    say,
    shorten,
    show,
)
from palestra.cli.request_documents import name_options, read_request
from palestra.cli.server_address import Json, Server, TokenFile, connect, find_data_dir
from palestra.contract.audit import AuditEntry, AuditQuery

User = Annotated[str | None, typer.Option(help="Name or ID of the person.")]
Thing = Annotated[
    str | None, typer.Option("--object", metavar="TYPE[/ID]", help="For example job/job_01m8...")
]
Action = Annotated[
    str | None, typer.Option(help="The action or how it begins, for example token.revoke or job.")
]
Refused = Annotated[bool, typer.Option("--refused", help="Only what was refused.")]
Since = Annotated[
    str | None, typer.Option(metavar="TIME", help="From then on: 2026-03-01T12:00:00Z.")
]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Before then.")]


def register(app: typer.Typer) -> None:
    """Adds the commands of this module to a group."""
    audit = typer.Typer(
        help="Reads and verifies the audit log.", no_args_is_help=True, rich_markup_mode=None
    )
    audit.command("list")(list_entries)
    audit.command("export")(export)
    audit.command(**RAW)(verify)
    app.add_typer(audit, name="audit")


def list_entries(
    user: User = None,
    thing: Thing = None,
    action: Action = None,
    refused: Refused = False,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Rows at most.")] = 50,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Lists entries of the audit log, newest first."""
    query = _query(user, thing, action, refused, since, until)
    with connect(server, token_file) as client:
        rows = list(islice(client.audit(query), limit))
    if json:
        return emit_json(rows)
    headings = ("time", "person", "action", "object", "outcome", "address", "credential", "details")
    return show(build_table(headings, [_cells(row) for row in rows]))


def _cells(row: AuditEntry) -> tuple[str, ...]:
    outcome = row.outcome if row.code is None else f"{row.outcome}: {row.code}"
    details = ", ".join(f"{name}={value}" for name, value in row.data.items())
    return (
        f"{row.at:%Y-%m-%d %H:%M:%S}",
        remove_control_characters(row.user or row.actor),
        row.action,
        remove_control_characters(f"{row.object_type}/{row.object_id}"),
        outcome if row.count == 1 else f"{outcome} ({row.count} times)",
        row.address or "",
        row.credential or "",
        shorten(remove_control_characters(details)),
    )


def export(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Must not exist yet; - is standard output.")
    ] = STDOUT,
    user: User = None,
    thing: Thing = None,
    action: Action = None,
    refused: Refused = False,
    since: Since = None,
    until: Until = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Writes entries of the audit log as JSON lines, oldest first."""
    query = _query(user, thing, action, refused, since, until)
    count = 0
    with connect(server, token_file) as client, open_new_file(file) as target:
        for line in client.export_audit(query):
            target.write(line + b"\n")
            count += 1
    if file != STDOUT:
        entries = {"entries": count, "path": str(file.absolute())}
        emit_json(entries) if json else say(f"{count} entries in {file}")


def verify(context: typer.Context) -> None:
    """Verifies the chain of the audit log in the database, on the server's machine.

    Prints JSON, which names the database; exit code 1 if an entry was changed, removed or added by
    hand. Keep the printed last_id and last_hash on another machine: --noted ID:HASH later detects a
    rewritten log up to that entry.
    """
    data = None if names_place(context.args) else find_data_dir()
    if data is not None and data.root.parent != Path.cwd():
        fail_usage(f"{data.root} is of a directory above: --data-dir {data.root} verifies it")
    run_admin("audit-verify", context.args, own="--noted")


def _query(
    user: str | None,
    thing: str | None,
    action: str | None,
    refused: bool,
    since: str | None,
    until: str | None,
) -> AuditQuery:
    kind, _, thing_id = (thing or "").partition("/")
    members: dict[str, Any] = {
        "user": user,
        "object_type": kind or None,
        "object_id": thing_id or None,
        "action": action,
        "outcome": "refused" if refused else None,
        "since": since,
        "until": until,
    }
    return read_request(
        AuditQuery, members, name_options({"object_type": "object", "object_id": "object"})
    )
