"""Commands about what one's jobs do and wait for: `palestra status | queue`."""

from datetime import datetime
from itertools import islice
from typing import Annotated, Final

import typer

from palestra.cli.output import (
    build_table,
    describe_cause,
    emit_json,
    fail_usage,
    say,
    shorten,
    show,
)
from palestra.cli.server_address import Json, Server, TokenFile, connect
from palestra.cli.submission_preview import describe_accuracy
from palestra.client import Client
from palestra.contract.names import PriorityClass
from palestra.contract.overview import OverviewView
from palestra.contract.resources import JobView

_MAX_JOBS: Final = 50


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    for command in (status, queue):
        app.command()(command)


def status(server: Server = None, token_file: TokenFile = None, json: Json = False) -> None:
    """Shows your running and failed runs, and which of your jobs starts next."""
    with connect(server, token_file) as client:
        found = client.overview()
    if json:
        return emit_json(found)
    say(_describe_next(found))
    if found.running:
        say(f"\n{found.running_total:,} running")
        rows = [
            (run.id, run.experiment_id, run.seed, f"{run.progress.env_step:,}")
            for run in found.running
        ]
        show(build_table(("run", "experiment", "seed", "env_steps"), rows, numbers=("seed",)))
    if found.failed:
        say(f"\n{found.failed_total:,} failed since {found.failed_since:%Y-%m-%d %H:%M}")
        causes = [
            (run.id, run.experiment_id, run.seed, shorten(describe_cause(run.cause, run.failure)))
            for run in found.failed
        ]
        show(build_table(("run", "experiment", "seed", "cause"), causes, numbers=("seed",)))
    return None


def _describe_next(found: OverviewView) -> str:
    paused = f" {found.paused:,} are paused." if found.paused else ""
    if found.next_job is None:
        return f"No job of yours waits.{paused}"
    job = found.next_job
    place = "has no place yet" if job.position is None else f"is number {job.position:,}"
    waiting = "1 job waits" if found.waiting == 1 else f"{found.waiting:,} jobs wait"
    return f"{waiting}: {job.id} {place} in {job.pool}. {job.waiting or ''}{paused}".rstrip()


def queue(
    pool: Annotated[
        str | None, typer.Argument(help="Name of a pool; may be left out where you have one.")
    ] = None,
    priority_class: Annotated[
        PriorityClass | None, typer.Option("--class", help="Only jobs of this class.")
    ] = None,
    mine: Annotated[bool, typer.Option("--mine", help="Only what you submitted.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Rows at most.")] = _MAX_JOBS,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Lists the waiting jobs of a pool in the order in which they will start."""
    with connect(server, token_file) as client:
        chosen = pool or _find_only_pool(client)
        found = client.waiting_jobs(
            chosen, priority_class=priority_class, user="me" if mine else None
        )
        rows = list(islice(found, limit))
        accuracy = None if json else client.estimate_accuracy(chosen)
    if accuracy is None:
        return emit_json(rows)
    headings = ("place", "job", "class", "project", "user", "queued", "waiting")
    show(build_table(headings, [_cells(row) for row in rows], numbers=("place",)))
    if accuracy.starts:
        say(f"earlier estimates of starts: {describe_accuracy(accuracy)}")
    return None


def _find_only_pool(client: Client) -> str:
    names = [pool.name for pool in client.pools()]
    if len(names) != 1:
        fail_usage(f"name the pool: you may use {', '.join(names) or 'none'}")
    return names[0]


def _cells(row: JobView) -> tuple[object, ...]:
    return (
        "" if row.position is None else f"{row.position:,}",
        row.id,
        row.priority_class,
        row.project,
        row.created_by,
        _format_time(row.created_at),
        shorten(row.waiting or ""),
    )


def _format_time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"
