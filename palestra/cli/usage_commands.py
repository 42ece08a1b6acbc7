"""`palestra usage`: device-hours by project, person, experiment, environment, pool and time."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from palestra.cli.new_files import STDOUT, open_new_file
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
from palestra.contract.quotas import OwnQuotasView, QuotaStateView
from palestra.contract.usage import (
    UsageAmount,
    UsageBucketSize,
    UsageGroup,
    UsageKey,
    UsageQuery,
    UsageReport,
)

_HOUR: Final = 3_600
_UNITS: Final = {"h": "hours", "d": "days", "w": "weeks"}

By = Annotated[
    list[UsageKey] | None,
    typer.Option(help="What to group by; may be given several times. By default project."),
]
Bucket = Annotated[
    UsageBucketSize | None, typer.Option(help="Divides the period into parts of this length.")
]
Since = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="12h, 30d, 4w ago, or 2026-03-01T12:00:00Z; by default 7d."),
]
Until = Annotated[
    str | None, typer.Option(metavar="TIME", help="Before then, likewise; by default now.")
]
Csv = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Writes CSV to a file that does not exist yet, or to -."),
]
User = Annotated[str | None, typer.Option(help="Login name of a person; me is yourself.")]


def register(app: typer.Typer) -> None:
    """Adds the command of this module to a group."""
    app.command("usage")(show_usage)


def show_usage(
    by: By = None,
    bucket: Bucket = None,
    since: Since = None,
    until: Until = None,
    user: User = None,
    experiment: Annotated[str | None, typer.Option(metavar="ID")] = None,
    environment: Annotated[str | None, typer.Option("--env", metavar="ID")] = None,
    pool: Annotated[str | None, typer.Option(metavar="POOL")] = None,
    csv: Csv = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Shows the usage of the pools: device-hours, waste, and idle slots beside waiting jobs."""
    members: dict[str, Any] = {
        "by": list(dict.fromkeys(by or [UsageKey.PROJECT])),
        "bucket": bucket,
        "since": since and resolve_time("--since", since, _UNITS, -1),
        "until": until and resolve_time("--until", until, _UNITS, -1),
        "user": user,
        "experiment": experiment,
        "environment": environment,
        "pool": pool,
    }
    query = read_request(UsageQuery, members, name_options({"environment": "env"}))
    with connect(server, token_file) as client:
        if csv is not None:
            return _write(client.export_usage(query), csv, json=json)
        found = client.usage(query)
        quotas = None if json else client.own_quotas()
    if quotas is None:
        return emit_json(found)
    _show(found)
    return _show_quotas(quotas)


def _write(lines: Iterator[bytes], file: Path, *, json: bool) -> None:
    count = -1  # The first line has the names of the columns.
    with open_new_file(file) as target:
        for line in lines:
            target.write(line + b"\r\n")
            count += 1
    if file != STDOUT:
        written = {"lines": count, "path": str(file.absolute())}
        emit_json(written) if json else say(f"{count} lines in {file}")


def _show(found: UsageReport) -> None:
    say(f"device-hours from {found.since:%Y-%m-%d %H:%M} to {found.until:%Y-%m-%d %H:%M} UTC")
    names = [key.value for key in found.by]
    times = [] if found.bucket is None else [found.bucket.value]
    numbers = ("used", "on GPUs", "lost")
    rows = [row for group in found.groups for row in _group_rows(names, group, found)]
    if found.rest is not None:
        name = f"({found.rest_groups} more)"
        rows.append((*_pad(name, names, times), *_hours(found.rest)))
    rows.append((*_pad("total", names, times), *_hours(found)))
    show(build_table((*names, *times, *numbers), rows, numbers=numbers))
    _show_pools(found)


def _group_rows(
    names: Sequence[str], group: UsageGroup, found: UsageReport
) -> Iterator[tuple[str, ...]]:
    key = [remove_control_characters(getattr(group, name) or "-") for name in names]
    if found.bucket is None:
        yield (*key, *_hours(group))
        return
    for bucket in group.buckets:
        yield (*key, f"{bucket.start:%Y-%m-%d %H:%M}", *_hours(bucket))


def _pad(cell: str, names: Sequence[str], times: Sequence[str]) -> list[str]:
    return [cell, *[""] * (len(names) + len(times) - 1)]


def _hours(amount: UsageAmount) -> tuple[str, str, str]:
    seconds = (amount.used_seconds, amount.gpu_seconds, amount.lost_seconds)
    used, gpus, lost = (f"{value / _HOUR:,.2f}" for value in seconds)
    return used, gpus, lost


def _show_quotas(found: OwnQuotasView) -> None:
    """Prints what is left of the caller's quotas, unless there is none."""
    numbers = ("queued", "running", "device-hours")
    rows = [
        (one.pool, f"{whose} {one.project}", *_left(state))
        for one in found.items
        for whose, state in (("you in", one.of_person), ("all of", one.of_project))
        if any(value is not None for _, value in state.limits)
    ]
    if rows:
        days = round(found.period_seconds / 86_400)
        say(f"left of the quotas; device-hours within {days} days")
        show(build_table(("pool", "of", *numbers), rows, numbers=numbers))


def _left(state: QuotaStateView) -> tuple[str, ...]:
    left, limits = state.left, state.limits
    pairs = (
        (left.queued, limits.queued),
        (left.running, limits.running),
        (left.device_hours, limits.device_hours),
    )
    return tuple(
        "any" if rest is None or limit is None else f"{rest:g} of {limit:g}"
        for rest, limit in pairs
    )


def _show_pools(found: UsageReport) -> None:
    numbers = ("recorded", "slots", "busy", "idle beside waiting jobs")
    rows = [
        (pool.pool, *(f"{value / _HOUR:,.2f}" for value in (pool.recorded_seconds, *sums)))
        if pool.recorded_seconds
        else (pool.pool, "0.00", "unknown", "unknown", "unknown")
        for pool in found.pools
        for sums in [(pool.slot_seconds, pool.busy_seconds, pool.idle_waiting_seconds)]
    ]
    if rows:
        say("slot-hours of the pools, of the hours that a server recorded")
        show(build_table(("pool", *numbers), rows, numbers=numbers))
