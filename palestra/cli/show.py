"""`palestra show`: one run with its attempts, jobs, snapshots, evaluations and files."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from palestra.cli.files import build_artifact_table
from palestra.cli.output import (
    build_table,
    describe_backlog,
    describe_cause,
    emit_json,
    format_number,
    format_spread,
    format_state,
    out,
    remove_control_characters,
    say,
    shorten,
    show,
)
from palestra.cli.server_address import Json, Server, TokenFile, connect
from palestra.contract.resources import (
    AttemptView,
    EvaluationView,
    JobView,
    RunDetail,
    SnapshotView,
)
from palestra.contract.sizes import format_size


def register(app: typer.Typer) -> None:
    """Adds the command of this module to a group."""
    app.command("show")(show_run)


def show_run(
    run: Annotated[str, typer.Argument(metavar="RUN")],
    rows: Annotated[
        int, typer.Option(min=1, max=100_000, help="Rows of each table at most, the newest.")
    ] = 10,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Shows a run: state, why it failed, attempts, jobs, snapshots, evaluations and files.

    With --json all rows of each.
    """
    with connect(server, token_file) as client:
        found = client.run(run)
        parts: dict[str, list[Any]] = {
            "snapshots": list(client.snapshots(run)),
            "evaluations": list(client.evaluations(run)),
            "artifacts": list(client.artifacts(run)),
        }
    if json:
        emit_json({**found.model_dump(mode="json"), **parts})
        return
    _show_head(found)
    _show_part("attempts", found.attempts[-rows:], len(found.attempts), _attempts)
    _show_part("jobs", found.jobs[-rows:], len(found.jobs), _jobs)
    for name, make in (
        ("snapshots", _snapshots),
        ("evaluations", _evaluations),
        ("artifacts", build_artifact_table),
    ):
        _show_part(name, parts[name][:rows], len(parts[name]), make)


def _show_head(run: RunDetail) -> None:
    at = run.progress
    done = "" if at.fraction is None else f"  ({at.fraction:.0%})"
    phase = "" if run.phase is None else f" ({run.phase})"
    say(f"{run.id}  {run.state}{phase}  {describe_cause(run.cause, None)}".rstrip())
    say(f"experiment  {run.experiment_id}  seed {run.seed}")
    say(
        f"progress    {at.env_step:,} env_steps, {at.update:,} updates, {at.episode:,} "
        f"episodes{done}"
    )
    if run.snapshots.written is not None:
        say(
            f"saved       {run.snapshots.written:,} env_steps on the worker, "
            f"{run.snapshots.verified or 0:,} on the server"
        )
    modes = [attempt.compile for attempt in run.attempts if attempt.compile is not None]
    if modes:
        say(f"updates     {modes[-1]}")
    simulators = [attempt.simulator for attempt in run.attempts if attempt.simulator is not None]
    if simulators:
        say(f"simulator   {simulators[-1]}")
    if run.not_uploaded is not None:
        say(f"held up     {describe_backlog(run.not_uploaded)}")
    if run.failure is not None:
        say(f"\nfailure     {remove_control_characters(run.failure.message)}")
        for line in (run.failure.traceback or "").splitlines():
            out.out(f"  {remove_control_characters(line)}", highlight=False)


def _show_part(name: str, shown: Sequence[Any], every: int, make: Any) -> None:
    say(
        f"\n{name}"
        + (f" ({len(shown)} of {every})" if len(shown) < every else "" if every else ": none")
    )
    if shown:
        show(make(shown))


def _attempts(rows: Sequence[AttemptView]) -> Any:
    cells = [
        (
            row.number,
            row.id,
            row.worker_name,
            format_state(row.state),
            row.outcome,
            ", ".join(snapshot for snapshot in row.resumed_from.values() if snapshot)
            or "the start",
            f"{row.started_at:%Y-%m-%d %H:%M:%S}",
            "" if row.ended_at is None else f"{row.ended_at:%Y-%m-%d %H:%M:%S}",
            shorten(describe_cause(row.cause, row.failure)),
        )
        for row in rows
    ]
    return build_table(
        ("no", "attempt", "worker", "state", "outcome", "began from", "started", "ended", "cause"),
        cells,
        numbers=("no",),
    )


def _why(row: JobView) -> str:
    return row.waiting or shorten(
        describe_backlog(row.not_uploaded) or describe_cause(row.cause, row.failure)
    )


def _jobs(rows: Sequence[JobView]) -> Any:
    cells = [
        (row.id, row.schedule, format_state(row.state), row.attempts, _why(row)) for row in rows
    ]
    return build_table(
        ("job", "schedule", "state", "attempts", "cause"), cells, numbers=("attempts",)
    )


def _snapshots(rows: Sequence[SnapshotView]) -> Any:
    def marks(row: SnapshotView) -> str:
        named = (("best", row.best), ("newest", row.newest), ("superseded", row.superseded))
        return " ".join(name for name, holds in named if holds)

    cells = [
        (
            row.id,
            f"{row.env_step:,}",
            row.reason,
            row.state,
            format_number(row.score),
            format_size(row.size),
            marks(row),
        )
        for row in rows
    ]
    headings = ("snapshot", "env_step", "reason", "state", "score", "size", "")
    return build_table(headings, cells, numbers=("env_step", "score", "size"))


def _evaluations(rows: Sequence[EvaluationView]) -> Any:
    cells = [
        (
            f"{row.env_step:,}",
            row.source,
            row.episodes,
            format_number(row.mean),
            format_spread(row.stdev, row.episodes),
            format_number(row.min),
            format_number(row.max),
            row.cut_episodes,
            "  ".join(
                f"{name} {format_number(value, 4)}" for name, value in sorted(row.metrics.items())
            ),
        )
        for row in rows
    ]
    headings = ("env_step", "source", "episodes", "mean", "stdev", "min", "max", "cut", "metrics")
    return build_table(headings, cells, numbers=headings[:1] + headings[2:8])
