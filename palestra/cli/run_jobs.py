"""Commands that queue jobs on a run: `palestra evaluate | test | export`."""

from collections.abc import Sequence
from typing import Annotated, Final, cast, get_args

import typer

from palestra.cli.output import (
    CANCELLED,
    FAILURE,
    CommandError,
    build_table,
    describe_cause,
    emit_json,
    fail_usage,
    format_number,
    format_spread,
    say,
    show,
)
from palestra.cli.server_address import Json, Server, TokenFile, connect
from palestra.client import Client
from palestra.contract.job_options import DependencyCondition, EvaluateOptions
from palestra.contract.names import EvaluationPolicy, ExportFormat
from palestra.contract.problems import suggest_nearest
from palestra.contract.resources import JobView
from palestra.contract.states import JobState

Wait = Annotated[bool, typer.Option("--wait", help="Wait for the result.")]
Pool = Annotated[
    str | None, typer.Option(help="Pool of workers; the one of the run's training by default.")
]
Snapshot = Annotated[str, typer.Option(help="newest, best or the ID of a snapshot.")]

After = Annotated[
    list[str] | None,
    typer.Option("--after", metavar="JOB", help="Start once this job has succeeded; repeatable."),
]
On = Annotated[
    DependencyCondition,
    typer.Option("--on", help="With --after: whether the jobs have to succeed, or end in any way."),
]

_FORMATS: Final = "|".join(get_args(ExportFormat))


def register(app: typer.Typer) -> None:
    """Adds the commands of this module to a group."""
    for command in (evaluate, export):
        app.command()(command)
    app.command("test")(try_out)


def evaluate(
    run: Annotated[str, typer.Argument(metavar="RUN")],
    snapshot: Snapshot = "newest",
    episodes: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="Episodes; the definition's by default.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=2**32 - 1, help="Seed of the episodes; a fresh one by default."),
    ] = None,
    policy: Annotated[
        EvaluationPolicy | None,
        typer.Option(
            help="greedy takes the most probable actions, stochastic draws them from the policy, "
            "both evaluates twice; the definition's by default."
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", help="Evaluate every snapshot as it comes, until the training is over."
        ),
    ] = False,
    on_train_data: Annotated[
        bool, typer.Option("--on-train-data", help="With --follow: on the training's own episodes.")
    ] = False,
    throttle: Annotated[
        float,
        typer.Option(
            min=0, help="With --follow: least seconds between the starts of two evaluations."
        ),
    ] = 0,
    delay: Annotated[
        float, typer.Option(min=0, help="With --follow: seconds before the first.")
    ] = 0,
    again: Annotated[
        bool,
        typer.Option(
            "--again",
            help="With --follow: the newest again, with other episodes, while none is newer.",
        ),
    ] = False,
    pool: Pool = None,
    after: After = None,
    on: On = "success",
    wait: Wait = False,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Queues an evaluation of a snapshot, or with --follow of each snapshot that a run writes."""
    if not follow and (on_train_data or throttle or delay or again):
        fail_usage("--on-train-data, --throttle, --delay and --again go with --follow")
    if follow and snapshot != "newest":
        fail_usage("--follow takes the snapshots as they come: leave out --snapshot")
    if again and throttle < 1:
        fail_usage("--again goes on without end: give --throttle of 1 or more")
    if on_train_data and (seed is not None or again):
        fail_usage("--on-train-data has the training's own episodes: leave out --seed and --again")
    if on_train_data and policy is not None:
        fail_usage("--on-train-data takes the definition's policy: leave out --policy")
    if follow and after:
        fail_usage("--follow waits for its training by itself: leave out --after")
    with connect(server, token_file) as client:
        if follow:
            options = EvaluateOptions(
                episodes=episodes,
                seed=seed,
                throttle_seconds=throttle,
                delay_seconds=delay,
                only_once=not again,
                policy=policy,
            )
            job = client.follow(run, options, on_train_data=on_train_data, pool=pool)
        else:
            job = client.evaluate(
                run,
                snapshot=snapshot,
                episodes=episodes,
                seed=seed,
                policy=policy,
                pool=pool,
                after=after or (),
                on=on,
            )
        _print_result(client, run, job, wait=wait, as_json=json, many=follow)


def try_out(
    run: Annotated[str, typer.Argument(metavar="RUN")],
    pool: Pool = None,
    wait: Wait = False,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Queues a test of a run's definition: one update, one evaluation, one export.

    The test leaves no snapshot from which a training could resume.
    """
    with connect(server, token_file) as client:
        _print_result(client, run, client.test(run, pool=pool), wait=wait, as_json=json)


def export(
    run: Annotated[str, typer.Argument(metavar="RUN")],
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            metavar=_FORMATS,
            help="Once per format; the definition's, or weights, by default.",
        ),
    ] = None,
    snapshot: Snapshot = "newest",
    pool: Pool = None,
    after: After = None,
    on: On = "success",
    wait: Wait = False,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Queues an export of a run's snapshot: files that hold only what is needed to act."""
    wanted = _formats(formats or [])
    with connect(server, token_file) as client:
        job = client.export(run, wanted, snapshot=snapshot, pool=pool, after=after or (), on=on)
        if wait:
            job = _wait_for_success(client, job)
        emit_json(job) if json else say(f"{'exported' if wait else 'queued'}  {job.id}")


def _print_result(
    client: Client, run: str, job: JobView, *, wait: bool, as_json: bool, many: bool = False
) -> None:
    if not wait:
        emit_json(job) if as_json else say(f"queued  {job.id}")
        return
    job = _wait_for_success(client, job)
    made = sorted(
        (row for row in client.evaluations(run) if row.job_id == job.id),
        key=lambda row: (row.env_step, row.source),
    )
    if as_json:
        emit_json(made if many or len(made) > 1 else made[0])
        return
    cells = [
        [
            f"{row.env_step:,}",
            row.episodes,
            format_number(row.mean),
            format_spread(row.stdev, row.episodes),
            *(format_number(value) for value in (row.min, row.median, row.max)),
            row.cut_episodes,
            row.source,
        ]
        for row in made
    ]
    headings = ("env_step", "episodes", "mean", "stdev", "min", "median", "max", "cut", "source")
    show(build_table(headings, cells, numbers=headings[:-1]))


def _formats(named: Sequence[str]) -> tuple[ExportFormat, ...]:
    unknown = [name for name in named if name not in get_args(ExportFormat)]
    if unknown:
        fail_usage(
            "--format: there is no format "
            f"{unknown[0]!r}{suggest_nearest(unknown[0], get_args(ExportFormat))}; give {_FORMATS}"
        )
    if len(set(named)) < len(named):
        fail_usage("--format: name each format once")
    return tuple(cast("ExportFormat", name) for name in named)


def _wait_for_success(client: Client, job: JobView) -> JobView:
    """Waits until the job has succeeded; raises with the reason if it ends otherwise."""
    job = client.wait(job.id)
    if job.state is not JobState.SUCCEEDED:
        exit_code = CANCELLED if job.state is JobState.CANCELLED else FAILURE
        raise CommandError(
            f"{job.id} {job.state}: {describe_cause(job.cause, job.failure)}", exit_code
        )
    return job
