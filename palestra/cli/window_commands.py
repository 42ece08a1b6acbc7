"""Commands of maintenance windows and reservations: `palestra pools window ...`."""

from datetime import UTC, datetime
from typing import Annotated, Final

import typer

from palestra.cli.output import (
    build_table,
    emit_json,
    remove_control_characters,
    say,
    show,
)
from palestra.cli.relative_times import resolve_time
from palestra.cli.request_documents import name_options, read_request
from palestra.cli.server_address import Json, Server, TokenFile, connect
from palestra.contract.pool_windows import PoolWindowRequest, PoolWindowView, WindowKind

_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days"}
_OPTIONS: Final = {"start": "from", "end": "to", "workers": "worker"}

PoolName = Annotated[str, typer.Argument(metavar="POOL", help="Name of a pool.")]
When = "30m, 2h or 3d from now, or 2026-12-01T08:00:00Z"


def register(pools: typer.Typer) -> None:
    """Adds the commands to those of pools."""
    window = typer.Typer(
        help="Lists, plans and cancels maintenance windows and reservations.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    window.command("list")(list_windows)
    window.command("add")(add)
    window.command("cancel")(cancel)
    pools.add_typer(window, name="window")


def list_windows(
    pool: PoolName, server: Server = None, token_file: TokenFile = None, json: Json = False
) -> None:
    """Lists the windows of a pool that have not ended."""
    with connect(server, token_file) as client:
        rows = list(client.pool_windows(pool))
    if json:
        return emit_json(rows)
    cells = [
        (
            row.id,
            _name(row),
            f"{row.start:%Y-%m-%d %H:%M}",
            f"{row.end:%Y-%m-%d %H:%M}",
            ", ".join(row.workers) or "all",
            "now" if row.has_begun else "planned",
            remove_control_characters(row.reason),
        )
        for row in rows
    ]
    return show(
        build_table(("window", "kind", "from (UTC)", "to (UTC)", "workers", "", "reason"), cells)
    )


def add(
    pool: PoolName,
    end: Annotated[str, typer.Option("--to", metavar="TIME", help=f"Its end: {When}.")],
    start: Annotated[
        str, typer.Option("--from", metavar="TIME", help=f"Its start: now, {When}.")
    ] = "now",
    worker: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this worker; may be given several times."),
    ] = None,
    reserved_project: Annotated[
        str | None,
        typer.Option("--for-project", metavar="SLUG", help="Reserves the time for a project."),
    ] = None,
    reserved_user: Annotated[
        str | None,
        typer.Option("--for-user", metavar="NAME", help="Reserves the time for a person."),
    ] = None,
    reason: Annotated[str, typer.Option(help="Shown to everybody whose jobs wait.")] = "",
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Plans a maintenance window, or with --for-project or --for-user a reservation.

    Jobs start before it only if their time limit ends before it; what runs is not stopped.
    """
    is_reservation = reserved_project is not None or reserved_user is not None
    members = {
        "kind": WindowKind.RESERVATION if is_reservation else WindowKind.MAINTENANCE,
        "start": _parse_time("--from", start),
        "end": _parse_time("--to", end),
        "workers": worker or [],
        "project": reserved_project,
        "user": reserved_user,
        "reason": reason,
    }
    request = read_request(PoolWindowRequest, members, name_options(_OPTIONS))
    with connect(server, token_file) as client:
        made = client.plan_pool_window(pool, request)
    if json:
        return emit_json(made)
    return say(
        f"planned {made.id}: {_name(made)} from {made.start:%Y-%m-%d %H:%M} to "
        f"{made.end:%Y-%m-%d %H:%M} UTC"
    )


def cancel(
    pool: PoolName,
    window: Annotated[str, typer.Argument(metavar="WINDOW", help="ID of a window.")],
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Cancels a window, also one that has begun."""
    with connect(server, token_file) as client:
        client.cancel_pool_window(pool, window)
    emit_json({"pool": pool, "cancelled": window}) if json else say(f"cancelled {window}")


def _name(row: PoolWindowView) -> str:
    holder = row.project or row.user
    if row.kind is WindowKind.MAINTENANCE:
        return row.kind.value
    return f"{row.kind.value} for {holder or 'others'}"


def _parse_time(option: str, text: str) -> str:
    """Returns a time as RFC 3339; `2h` is in two hours."""
    if text == "now":
        return datetime.now(UTC).isoformat()
    return resolve_time(option, text, _UNITS, 1)
