"""Commands of pools: `palestra pools ...`."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

from palestra.cli import quota_commands, window_commands
from palestra.cli.output import (
    build_table,
    emit_json,
    fail_usage,
    remove_control_characters,
    say,
    show,
)
from palestra.cli.request_documents import read_request
from palestra.cli.server_address import Json, Server, TokenFile, connect
from palestra.contract.pools import EnrolmentTokenRequest, PoolChange, PoolRequest, PoolView
from palestra.contract.usage import PersonShareView, ProjectShareView

PoolName = Annotated[str, typer.Argument(metavar="POOL", help="Name of a pool.")]
Slug = Annotated[str, typer.Argument(metavar="PROJECT", help="Slug of a project.")]
Description = Annotated[str | None, typer.Option(help="What the pool is for.")]
DefaultWall = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Wall time of jobs that name none: 90m, 12h; or none."),
]
MaximumWall = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Longest wall time that a job may ask for; or none."),
]
ShowsNames = Annotated[
    bool | None,
    typer.Option(help="Whether projects see whose foreign jobs occupy slots."),
]
_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_NEVER: Final = 0


def register(app: typer.Typer) -> None:
    """Adds the commands of this module to a group."""
    pools = typer.Typer(
        help="Lists, creates, changes and pauses pools of workers.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    pools.command("list")(list_pools)
    pools.command("show")(show_pool)
    pools.command("create")(create)
    pools.command("set")(change)
    pools.command("pause")(pause)
    pools.command("resume")(resume)
    pools.command("delete")(delete)
    pools.command("admit")(admit)
    pools.command("remove")(remove)
    pools.command("shares")(show_shares)
    pools.command("tokens")(list_tokens)
    pools.command("token")(create_token)
    pools.command("revoke-token")(revoke_token)
    quota_commands.register(pools)
    window_commands.register(pools)
    app.add_typer(pools, name="pools")


def list_pools(server: Server = None, token_file: TokenFile = None, json: Json = False) -> None:
    """Lists the pools that you may use, or all of them for an administrator of the server."""
    with connect(server, token_file) as client:
        rows = list(client.pools())
    emit_json(rows) if json else _show(rows)


def show_pool(
    pool: PoolName, server: Server = None, token_file: TokenFile = None, json: Json = False
) -> None:
    """Shows a pool with its queue, its limits and the projects that it admits."""
    with connect(server, token_file) as client:
        found = client.pool(pool)
    _print(found, json=json)


def create(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    admit: Annotated[
        list[str] | None,
        typer.Option(metavar="PROJECT", help="Project to admit; may be given several times."),
    ] = None,
    description: Description = None,
    default_wall: DefaultWall = None,
    max_wall: MaximumWall = None,
    shows_names: ShowsNames = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Creates a pool. For administrators of the server."""
    request = read_request(
        PoolRequest,
        {
            "name": name,
            "description": description or "",
            "default_wall_seconds": _parse_seconds("--default-wall", default_wall),
            "max_wall_seconds": _parse_seconds("--max-wall", max_wall),
            "shows_names": bool(shows_names),
            "projects": admit or [],
        },
    )
    with connect(server, token_file) as client:
        made = client.create_pool(request)
    emit_json(made) if json else say(f"created pool {made.name}")


def change(
    pool: PoolName,
    description: Description = None,
    default_wall: DefaultWall = None,
    max_wall: MaximumWall = None,
    shows_names: ShowsNames = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Describes a pool, or changes its wall times or whether it shows names."""
    wanted: dict[str, Any] = {"description": description, "shows_names": shows_names}
    wanted = {member: value for member, value in wanted.items() if value is not None}
    if default_wall is not None:
        wanted["default_wall_seconds"] = _parse_seconds("--default-wall", default_wall)
    if max_wall is not None:
        wanted["max_wall_seconds"] = _parse_seconds("--max-wall", max_wall)
    if not wanted:
        fail_usage(
            "nothing to change: give --description, --default-wall, --max-wall, --shows-names or "
            "--no-shows-names"
        )
    with connect(server, token_file) as client:
        found = client.change_pool(pool, read_request(PoolChange, wanted))
    _print(found, json=json)


def pause(
    pool: PoolName,
    reason: Annotated[str, typer.Option(help="Shown to everybody whose jobs wait.")],
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Pauses a pool: no job of it starts, running ones go on."""
    with connect(server, token_file) as client:
        found = client.pause_pool(pool, reason)
    emit_json(found) if json else say(f"paused pool {found.name}")


def resume(
    pool: PoolName, server: Server = None, token_file: TokenFile = None, json: Json = False
) -> None:
    """Ends the pause of a pool."""
    with connect(server, token_file) as client:
        found = client.resume_pool(pool)
    emit_json(found) if json else say(f"resumed pool {found.name}")


def delete(
    pool: PoolName, server: Server = None, token_file: TokenFile = None, json: Json = False
) -> None:
    """Deletes a pool that has no live worker and no job that has not ended."""
    with connect(server, token_file) as client:
        client.delete_pool(pool)
    emit_json({"deleted": pool}) if json else say(f"deleted pool {pool}")


def admit(
    pool: PoolName,
    project: Slug,
    share: Annotated[
        float, typer.Option(help="Weight of the project: its part of the pool while all have work.")
    ] = 1.0,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Admits a project to a pool, or changes its share."""
    if not 0 < share <= 1_000_000:
        fail_usage(f"--share {share:g}: give a number above 0, up to 1000000")
    with connect(server, token_file) as client:
        found = client.admit_project(pool, project, share=share)
    emit_json(found) if json else say(f"the pool {found.name} admits {project}")


def remove(
    pool: PoolName,
    project: Slug,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Ends the admission of a project: its queued jobs wait, its running ones go on."""
    with connect(server, token_file) as client:
        client.remove_project(pool, project)
    answer = {"pool": pool, "removed": project}
    emit_json(answer) if json else say(f"the pool {pool} no longer admits {project}")


def show_shares(
    pool: PoolName, server: Server = None, token_file: TokenFile = None, json: Json = False
) -> None:
    """Shows the shares and the usage of a pool's projects and persons."""
    with connect(server, token_file) as client:
        found = client.pool_shares(pool)
    if json:
        return emit_json(found)
    cells: list[tuple[object, ...]] = []
    for project in found.projects:
        cells.append((project.project or "(other projects)", "", *_share_cells(project)))
        cells += [("", person.user, *_share_cells(person)) for person in project.persons]
    numbers = ("entitled", "used", "decayed", "device-hours")
    return show(build_table(("project", "person", *numbers), cells, numbers=numbers))


def _share_cells(share: ProjectShareView | PersonShareView) -> tuple[str, ...]:
    used = "-" if share.used is None else f"{share.used:.1%}"
    decayed = "-" if share.decayed is None else f"{share.decayed:.1%}"
    return f"{share.entitled:.1%}", used, decayed, f"{share.used_seconds / 3_600:.2f}"


def list_tokens(
    pool: PoolName, server: Server = None, token_file: TokenFile = None, json: Json = False
) -> None:
    """Lists the tokens with which workers enrol in a pool."""
    with connect(server, token_file) as client:
        rows = list(client.enrolment_tokens(pool))
    if json:
        return emit_json(rows)
    cells = [
        (
            row.id,
            remove_control_characters(row.name),
            row.created_by or "-",
            "never" if row.expires_at is None else f"{row.expires_at:%Y-%m-%d}",
            "-" if row.last_used_at is None else f"{row.last_used_at:%Y-%m-%d %H:%M}",
        )
        for row in rows
    ]
    return show(build_table(("token", "name", "made by", "expires", "last used"), cells))


def create_token(
    pool: PoolName,
    days: Annotated[int, typer.Option(min=0, help="Life in days; 0 never expires.")],
    name: Annotated[str, typer.Option(help="What it is for.")] = "workers",
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Makes a token with which workers enrol in a pool; its secret is printed once."""
    life = None if days == _NEVER else days
    request = read_request(EnrolmentTokenRequest, {"name": name, "expires_in_days": life})
    with connect(server, token_file) as client:
        made = client.create_enrolment_token(pool, request)
    emit_json(made) if json else say(made.secret or "")


def revoke_token(
    pool: PoolName,
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="ID of an enrolment token.")],
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Revokes an enrolment token; workers that enrolled with it go on."""
    with connect(server, token_file) as client:
        client.revoke_enrolment_token(pool, token)
    emit_json({"pool": pool, "revoked": token}) if json else say(f"revoked {token}")


def _show(rows: Sequence[PoolView]) -> None:
    cells = [
        (
            row.name,
            row.workers,
            row.slots - row.free_slots,
            row.slots,
            row.running,
            row.queued,
            "-" if row.max_wall_seconds is None else f"{row.max_wall_seconds} s",
            ", ".join(one.project for one in row.projects),
            ""
            if row.paused_at is None
            else f"paused: {remove_control_characters(row.pause_reason)}",
        )
        for row in rows
    ]
    numbers = ("workers", "busy", "slots", "running", "waiting")
    show(build_table(("pool", *numbers, "longest", "projects", "state"), cells, numbers=numbers))


def _print(found: PoolView, *, json: bool) -> None:
    if json:
        return emit_json(found)
    _show([found])
    if found.description:
        say(remove_control_characters(found.description))
    return None


def _parse_seconds(option: str, text: str | None) -> int | None:
    """Returns the seconds of a time such as 90m or 12h; `None` for `none`."""
    if text is None or text == "none":
        return None
    number, unit = (text[:-1], text[-1:]) if text[-1:].isalpha() else (text, "s")
    try:
        return int(float(number) * _UNITS[unit])
    except (ValueError, KeyError, OverflowError):
        fail_usage(f"{option} {text}: give a time such as 90m, 12h or 2d, or none")
