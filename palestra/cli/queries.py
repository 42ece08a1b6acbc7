"""Commands that only read: `palestra experiments | runs | jobs | workers | logs | provenance`."""

import time
from collections.abc import Sequence
from itertools import islice
from typing import Annotated

import typer
from pydantic import JsonValue

from palestra.cli.list_options import check_filter, check_sort, split_keys
from palestra.cli.log_printer import LogPrinter
from palestra.cli.named_keys import warn_of_unknown_order
from palestra.cli.output import (
    build_table,
    describe_backlog,
    describe_cause,
    describe_worker,
    emit_json,
    fail_usage,
    format_number,
    format_state,
    remove_control_characters,
    shorten,
    show,
    show_ids,
)
from palestra.cli.run_groups import GroupOptions, show_groups
from palestra.cli.server_address import Json, Project, Server, TokenFile, connect
from palestra.client import Client
from palestra.contract.resources import ExperimentView, JobView, RunView
from palestra.contract.states import FINAL_RUN_STATES

_EXACT = 1e15
"""Integers below it are written with all digits."""
Limit = Annotated[int, typer.Option(min=1, max=100_000, help="Rows at most.")]
Ids = Annotated[bool, typer.Option("--ids", help="IDs alone, one per line, for scripts.")]

Mine = Annotated[bool, typer.Option("--mine", help="Only what you submitted.")]
User = Annotated[str | None, typer.Option(help="Only what this user submitted: a login name.")]
Filter = Annotated[
    str,
    typer.Option(
        "--filter",
        help="Terms that must all hold, e.g. 'agent:ppo env:~Ant evaluation/mean.best>3000 "
        "state:running created:<7d -user:ada'.",
    ),
]
Sort = Annotated[
    str,
    typer.Option(
        "--sort",
        help="A field of the filter; - in front reverses. Up to four with commas between them, "
        "e.g. agent,-evaluation/mean.best.",
    ),
]
Columns = Annotated[
    str,
    typer.Option("--columns", help="Further columns, separated by commas, e.g. agent.gamma,env."),
]


def register(app: typer.Typer) -> None:
    """Adds the commands of this module to a group."""
    for command in (experiments, runs, jobs, workers, logs, provenance):
        app.command()(command)


def experiments(
    text: Annotated[str | None, typer.Argument(help="Part of the name or ID.")] = None,
    only: Annotated[str | None, typer.Option("--state", help="Only those in this state.")] = None,
    archived: Annotated[
        bool, typer.Option("--archived", help="The archived ones instead.")
    ] = False,
    mine: Mine = False,
    user: User = None,
    filters: Filter = "",
    sort: Sort = "-created_at",
    columns: Columns = "",
    limit: Limit = 50,
    ids: Ids = False,
    project: Project = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Lists experiments, newest first unless --sort is given."""
    with connect(server, token_file, project) as client:
        found = client.experiments(
            state=only,
            text=text,
            archived=archived,
            user=_person(user, mine=mine),
            filter=check_filter(filters, "experiments"),
            sort=check_sort(sort, "experiments"),
            columns=split_keys(columns),
        )
        rows = list(islice(found, limit))
        if not (ids or json):
            warn_of_unknown_order(client, "experiments", sort, split_keys(columns))
    if ids:
        return show_ids(rows)
    if json:
        return emit_json(rows)
    cells = [
        (
            row.id,
            format_state(row.state),
            row.agent,
            row.env,
            sum(row.runs.values()),
            format_number(row.latest_evaluation.mean if row.latest_evaluation else None),
            f"{row.created_at:%Y-%m-%d %H:%M}",
            _failures(row),
        )
        for row in rows
    ]
    headings = (
        "experiment",
        "state",
        "agent",
        "environment",
        "runs",
        "evaluation",
        "created",
        "failures",
    )
    numbers = ("runs", "evaluation")
    return _show_owned(rows, headings, cells, numbers=numbers, columns=split_keys(columns))


def _failures(row: ExperimentView) -> str:
    if not row.failures:
        return ""
    first = row.failures[0]
    words = ": ".join(part for part in (first.cause, first.message) if part)
    return shorten(f"{first.runs} of {sum(row.runs.values())}: {remove_control_characters(words)}")


def runs(
    experiment: Annotated[
        str | None, typer.Argument(metavar="EXPERIMENT", help="ID of an experiment.")
    ] = None,
    only: Annotated[str | None, typer.Option("--state", help="Only those in this state.")] = None,
    mine: Mine = False,
    user: User = None,
    filters: Filter = "",
    sort: Sort = "-created_at",
    columns: Columns = "",
    limit: Limit = 50,
    ids: Ids = False,
    group: Annotated[
        str,
        typer.Option(
            "--group",
            metavar="KEYS",
            help="Groups by fields or members of the definition instead, e.g. agent,agent.gamma, "
            "with the mean of --metric.",
        ),
    ] = "",
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="With --group: the series and its statistic, or env_step; by default "
            "evaluation/mean.last.",
        ),
    ] = None,
    project: Project = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Lists runs, newest first unless --sort is given, or groups of them with --group."""
    if group:
        wanted = GroupOptions(
            by=split_keys(group),
            metric=metric or "evaluation/mean.last",
            filters=check_filter(filters, "runs"),
            user=_person(user, mine=mine),
            sort="-mean" if sort == "-created_at" else sort,
            limit=limit,
        )
        if experiment or only or columns or ids:
            fail_usage("--group goes with --filter, --metric, --sort, --user and --limit only")
        with connect(server, token_file, project) as client:
            return show_groups(client, wanted, json=json)
    if metric is not None:
        fail_usage("--metric is the mean of groups: give --group too, or --columns for each run")
    with connect(server, token_file, project) as client:
        found = client.runs(
            experiment,
            state=only,
            user=_person(user, mine=mine),
            filter=check_filter(filters, "runs"),
            sort=check_sort(sort, "runs"),
            columns=split_keys(columns),
        )
        rows = list(islice(found, limit))
        if not (ids or json):
            warn_of_unknown_order(client, "runs", sort, split_keys(columns))
    if ids:
        return show_ids(rows)
    if json:
        return emit_json(rows)
    cells = [
        (
            row.id,
            row.experiment_id,
            row.seed,
            format_state(row.state),
            f"{row.progress.env_step:,}",
            format_number(row.latest_evaluation.mean if row.latest_evaluation else None),
            shorten(describe_backlog(row.not_uploaded) or describe_cause(row.cause, row.failure)),
        )
        for row in rows
    ]
    headings = ("run", "experiment", "seed", "state", "env_steps", "evaluation", "cause")
    numbers = ("seed", "env_steps", "evaluation")
    return _show_owned(rows, headings, cells, numbers=numbers, columns=split_keys(columns))


def jobs(
    target: Annotated[
        str | None, typer.Argument(metavar="EXPERIMENT|RUN", help="Only jobs of this one.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--state", help="Only those in this state; may be given several times."),
    ] = None,
    mine: Mine = False,
    user: User = None,
    limit: Limit = 50,
    ids: Ids = False,
    project: Project = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Lists jobs, newest first."""
    run = target if target and target.startswith("run_") else None
    with connect(server, token_file, project) as client:
        found = client.jobs(
            run_id=run,
            experiment_id=None if run else target,
            state=only,
            user=_person(user, mine=mine),
        )
        rows = list(islice(found, limit))
    if ids:
        return show_ids(rows)
    if json:
        return emit_json(rows)
    cells = [(*_job_cells(row), shorten(describe_cause(row.cause, row.failure))) for row in rows]
    headings = ("job", "schedule", "state", "pool", "attempts", "waiting", "cause")
    return _show_owned(rows, headings, cells, numbers=("attempts",))


def _person(user: str | None, *, mine: bool) -> str | None:
    if mine and user is not None:
        fail_usage("give --mine or --user, not both")
    return "me" if mine else user


def _format_value(value: JsonValue) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return f"{value:,.0f}"
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else remove_control_characters(str(value))


def _holds_numbers(rows: Sequence[ExperimentView | RunView | JobView], column: str) -> bool:
    values = [getattr(row, "values", {}).get(column) for row in rows]
    return all(value is None or isinstance(value, int | float) for value in values)


def _show_owned(
    rows: Sequence[ExperimentView | RunView | JobView],
    headings: Sequence[str],
    cells: Sequence[Sequence[object]],
    *,
    numbers: Sequence[str],
    columns: Sequence[str] = (),
) -> None:
    """Prints a table with the project and the person of each row, where they differ.

    `columns` are further columns, whose values the rows hold.
    """
    headings = (*headings, *columns)
    numbers = (*numbers, *(name for name in columns if _holds_numbers(rows, name)))
    cells = [
        (*own, *(_format_value(getattr(row, "values", {}).get(name)) for name in columns))
        for own, row in zip(cells, rows, strict=True)
    ]
    first, *others = headings
    added = [
        (heading, values)
        for heading, values in (
            ("project", [row.project for row in rows]),
            ("user", [row.created_by for row in rows]),
        )
        if len(set(values)) > 1
    ]
    wide = [
        (own[0], *(values[place] for _, values in added), *own[1:])
        for place, own in enumerate(cells)
    ]
    show(build_table((first, *(heading for heading, _ in added), *others), wide, numbers=numbers))


def _job_cells(row: JobView) -> tuple[object, ...]:
    return (
        row.id,
        row.schedule,
        format_state(row.state),
        row.pool,
        row.attempts,
        row.waiting or shorten(describe_backlog(row.not_uploaded)),
    )


def workers(server: Server = None, token_file: TokenFile = None, json: Json = False) -> None:
    """Lists workers and their slots."""
    with connect(server, token_file) as client:
        rows = list(client.workers())
    if json:
        return emit_json(rows)
    cells = [
        (
            row.name,
            format_state(row.state),
            row.pool,
            row.host,
            f"{sum(slot.job_id is not None for slot in row.slots)}/{len(row.slots)}",
            describe_worker(row),
        )
        for row in rows
    ]
    return show(build_table(("worker", "state", "pool", "host", "slots", "notes"), cells))


def provenance(
    run: Annotated[str, typer.Argument(metavar="RUN")],
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Prints the provenance of a run as JSON: code, packages and machines of its attempts."""
    _ = json
    with connect(server, token_file) as client:
        emit_json(client.provenance(run))


def logs(
    run: Annotated[str, typer.Argument(metavar="RUN")],
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for more until the run ended.")
    ] = False,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Prints the log of a run.

    On a terminal also the newest text of lines that are not complete, such as progress bars.
    """
    with connect(server, token_file) as client, LogPrinter(as_json=json) as printer:
        after = _print_log(client, run, 0, printer)
        while follow:
            ended = client.run(run).state in FINAL_RUN_STATES
            after = _print_log(client, run, after, printer)
            if ended:
                return
            time.sleep(0.5)


def _print_log(client: Client, run: str, after: int, printer: LogPrinter) -> int:
    while True:
        page = client.log(run, after=after)
        printer.print(page)
        after = page.next_after
        if page.complete or not page.lines:
            return after
