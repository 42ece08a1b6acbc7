"""`palestra change`: class, priority and limits of waiting jobs, named or selected by options."""

from typing import Annotated, Any, Final

import typer

from palestra.cli.change_preview import Preview, print_preview
from palestra.cli.output import emit_json, fail_usage, say
from palestra.cli.request_documents import read_request
from palestra.cli.selected_jobs import (
    DryRun,
    Mine,
    Pool,
    SelectionOptions,
    User,
    Yes,
    act_on_selection,
)
from palestra.cli.server_address import Json, Server, TokenFile, connect
from palestra.contract.job_batches import JobSelection, JobVerb
from palestra.contract.job_changes import JobChange
from palestra.contract.names import PriorityClass
from palestra.contract.resources import JobView

_POOLS_DEFAULT: Final = "default"


def register(app: typer.Typer) -> None:
    """Adds the command of this module to a group."""
    app.command()(change)


def change(
    jobs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[JOB]...", help="Jobs that wait. Or the options that select jobs."),
    ] = None,
    priority_class: Annotated[
        PriorityClass | None, typer.Option("--class", help="Class in the pool's queue.")
    ] = None,
    priority: Annotated[
        int | None, typer.Option(min=-100, max=100, help="Among your own jobs, higher goes first.")
    ] = None,
    wall_seconds: Annotated[
        str | None,
        typer.Option(metavar="SECONDS", help="Wall time of an attempt; or default, the pool's."),
    ] = None,
    stall_seconds: Annotated[
        int | None, typer.Option(help="Longest time without progress of an attempt.")
    ] = None,
    grace_seconds: Annotated[
        int | None, typer.Option(help="Time that an attempt gets to stop.")
    ] = None,
    max_attempts: Annotated[
        int | None, typer.Option(help="Attempts after failures of machines.")
    ] = None,
    mine: Mine = False,
    user: User = None,
    pool: Pool = None,
    of_class: Annotated[
        PriorityClass | None, typer.Option("--of-class", help="All jobs of this class.")
    ] = None,
    preview: Preview = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Changes the class, the priority or limits of jobs that wait."""
    limits = {
        "wall_seconds": wall_seconds,
        "stall_seconds": stall_seconds,
        "grace_seconds": grace_seconds,
        "max_attempts": max_attempts,
    }
    request = _read_change(priority_class, priority, limits)
    options = SelectionOptions(
        mine=mine,
        user=user,
        pool=pool,
        priority_class=of_class,
        states=(),
        dry_run=dry_run,
        is_confirmed=yes,
    )
    if bool(jobs) == options.has_filter:
        fail_usage("give IDs of jobs, or options that select jobs, such as --mine; not both")
    selection = JobSelection(jobs=tuple(jobs)) if jobs else options.build_selection()
    is_one = jobs is not None and len(jobs) == 1
    with connect(server, token_file) as client:
        if preview:
            found = (
                client.preview_change(jobs[0], request)
                if jobs and is_one
                else client.preview_action(JobVerb.CHANGE, selection, change=request)
            )
            print_preview(found, as_json=json)
        elif jobs and is_one and not dry_run:
            print_job(client.change_job(jobs[0], request), as_json=json)
        else:
            act_on_selection(
                client,
                JobVerb.CHANGE,
                options,
                change=request,
                as_json=json,
                named=tuple(jobs or ()),
            )


def print_job(job: JobView, *, as_json: bool) -> None:
    """Prints what decides the place of a waiting job."""
    if as_json:
        return emit_json(job)
    wall = job.limits.wall_seconds
    place = "" if job.position is None else f", place {job.position}"
    wall_time = "no wall time" if wall is None else f"wall time {wall} s"
    return say(f"{job.id}  {job.priority_class}, priority {job.priority}, {wall_time}{place}")


def _read_change(
    priority_class: PriorityClass | None, priority: int | None, limits: dict[str, Any]
) -> JobChange:
    given = {name: value for name, value in limits.items() if value is not None}
    if "wall_seconds" in given:
        given["wall_seconds"] = _parse_wall_seconds(given["wall_seconds"])
    wanted: dict[str, Any] = {
        "priority_class": priority_class,
        "priority": priority,
        "limits": given or None,
    }
    wanted = {name: value for name, value in wanted.items() if value is not None}
    if not wanted:
        fail_usage("nothing to change: see palestra change --help for what can be")
    return read_request(JobChange, wanted)


def _parse_wall_seconds(text: str) -> int | None:
    """Returns a wall time; `None` for that of the pool."""
    if text == _POOLS_DEFAULT:
        return None
    if not text.isdecimal():
        fail_usage(f"--wall-seconds {text}: give a number of seconds, or {_POOLS_DEFAULT}")
    return int(text)
