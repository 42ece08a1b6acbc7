"""Commands of quotas: `palestra pools quotas | set-quota`."""

from typing import Annotated, Any

import typer

from palestra.cli.output import build_table, emit_json, fail_usage, say, show
from palestra.cli.request_documents import read_request
from palestra.cli.server_address import Json, Server, TokenFile, connect
from palestra.contract.quotas import ProjectQuotasView, QuotaChange, QuotaStateView

PoolName = Annotated[str, typer.Argument(metavar="POOL", help="Name of a pool.")]
Slug = Annotated[str, typer.Argument(metavar="PROJECT", help="Slug of a project.")]
Limit = Annotated[str | None, typer.Option(metavar="NUMBER", help="A number, or none.")]


def register(pools: typer.Typer) -> None:
    """Adds the commands to `palestra pools`."""
    pools.command("quotas")(show_quotas)
    pools.command("set-quota")(set_quota)


def show_quotas(
    pool: PoolName,
    project: Slug,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Shows the limits of a project and its persons in a pool, and the remaining amounts."""
    with connect(server, token_file) as client:
        _print(client.quotas(pool, project), as_json=json)


def set_quota(
    pool: PoolName,
    project: Slug,
    each_person: Annotated[
        bool,
        typer.Option("--each-person", help="Limit each person, instead of the project together."),
    ] = False,
    person: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Limit one person, instead of as each person."),
    ] = None,
    queued: Limit = None,
    running: Limit = None,
    device_hours: Limit = None,
    clear: Annotated[
        bool, typer.Option("--clear", help="With --person: limit this person as each person.")
    ] = False,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Limits queued jobs, running jobs and device-hours of 7 days in a pool. For administrators.

    Limits the project with all its persons, unless --each-person or --person is given.
    """
    if each_person and person is not None:
        fail_usage("give either --each-person or --person")
    options = {"queued": queued, "running": running, "device_hours": device_hours}
    limits: dict[str, Any] = {
        name: _parse_limit(name, text) for name, text in options.items() if text is not None
    }
    if clear and (person is None or limits):
        fail_usage("--clear goes with --person, and with no limit")
    if not limits and not clear:
        fail_usage("nothing to change: give --queued, --running or --device-hours")
    change: dict[str, Any] = {"each_person" if each_person else "project": limits}
    if person is not None:
        change = {"persons": {person: None if clear else limits}}
    request = read_request(QuotaChange, change)
    with connect(server, token_file) as client:
        _print(client.change_quotas(pool, project, request), as_json=json)


def _parse_limit(name: str, text: str) -> float | None:
    """Returns a limit; `None` for `none`."""
    if text == "none":
        return None
    try:
        return float(text) if name == "device_hours" else int(text)
    except ValueError:
        fail_usage(f"--{name.replace('_', '-')} {text}: give a number, or none")


def _print(found: ProjectQuotasView, *, as_json: bool) -> None:
    if as_json:
        return emit_json(found)
    rows = [("(the project)", *_cells(found.of_project))]
    rows += [
        (f"{one.user}{' (own limits)' if one.has_own_limits else ''}", *_cells(one))
        for one in found.persons
    ]
    numbers = ("queued", "running", "device-hours")
    show(build_table(("of", *numbers), rows, numbers=numbers))
    each = found.each_person
    if any(limit is not None for limit in (each.queued, each.running, each.device_hours)):
        say(
            f"each person: queued {_limit(each.queued)}, running {_limit(each.running)}, "
            f"device-hours {_limit(each.device_hours)}"
        )
    return None


def _cells(state: QuotaStateView) -> tuple[str, str, str]:
    """Returns the used amount of each limit."""
    used, limits = state.used, state.limits
    return (
        f"{used.queued} of {_limit(limits.queued)}",
        f"{used.running} of {_limit(limits.running)}",
        f"{used.device_hours:.1f} of {_limit(limits.device_hours)}",
    )


def _limit(value: float | None) -> str:
    return "any" if value is None else f"{value:g}"
