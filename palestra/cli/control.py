"""Commands that change what is queued, runs or is listed.

`palestra pause | resume | retry | cancel | give-up | evaluate | test | export | archive |
unarchive`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Final, Literal, cast, get_args

import typer

from palestra.cli.output import (
    CANCELLED,
    FAILURE,
    CommandError,
    cause_of,
    emit_json,
    number,
    say,
    show,
    spread,
    state,
    table,
    usage,
)
from palestra.cli.server_address import Json, Server, TokenFile, connect
from palestra.client import Client
from palestra.contract.job_options import EvaluateOptions
from palestra.contract.names import ExportFormat
from palestra.contract.problems import nearest
from palestra.contract.resources import JobView
from palestra.contract.states import FINAL_JOB_STATES, JobState
from palestra.errors import ConflictError, NotFoundError

Target = Annotated[
    str,
    typer.Argument(
        metavar="JOB|RUN|EXPERIMENT",
        help="A job; a run's or all of an experiment's unfinished jobs.",
    ),
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for the result.")]
Pool = Annotated[
    str | None, typer.Option(help="Pool of workers; the one of the run's training by default.")
]
Snapshot = Annotated[str, typer.Option(help="newest, best or the ID of a snapshot.")]
CodeChange = Annotated[
    bool,
    typer.Option(
        "--allow-code-change", help="Go on with the workers' code where it is not the experiment's."
    ),
]
Reason = Annotated[str, typer.Option(help="Kept with the change.")]

_DONE: Final = {
    "pause": "paused",
    "resume": "resumed",
    "cancel": "cancelled",
    "give-up": "given up",
}
_FORMATS: Final = "|".join(get_args(ExportFormat))
_NEEDS: Final = {
    "pause": frozenset(JobState) - FINAL_JOB_STATES - {JobState.PAUSED},
    "resume": frozenset({JobState.PAUSED}),
}


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    for command in (pause, resume, retry, cancel, evaluate, export, archive, unarchive):
        app.command()(command)
    app.command("give-up")(give_up)
    app.command("test")(try_out)


def pause(
    target: Target,
    reason: Reason = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until it has saved its snapshot and stopped.")
    ] = False,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Ends a training with a snapshot, from which `palestra resume` goes on."""
    with connect(server, token_file) as client:

        def action(job_id: str, reason: str) -> JobView:
            job = client.pause(job_id, reason)
            return client.wait(job_id, paused=True) if wait else job

        _act(client, action, "pause", target, reason=reason, as_json=json)


def resume(
    target: Target,
    reason: Reason = "",
    allow_code_change: CodeChange = False,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Queues what was paused again."""
    with connect(server, token_file) as client:
        action = partial(client.resume, allow_code_change=allow_code_change)
        _act(client, action, "resume", target, reason=reason, as_json=json)


def retry(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run that failed or was cancelled.")],
    origin: Annotated[
        Literal["newest", "start"],
        typer.Option("--from", help="Go on from the newest verified snapshot, or begin anew."),
    ] = "newest",
    reason: Reason = "",
    allow_code_change: CodeChange = False,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Trains a failed run again: from its newest snapshot, or from the start where it has none."""
    with connect(server, token_file) as client:
        job = client.retry(run, origin=origin, allow_code_change=allow_code_change, reason=reason)
        emit_json(job) if json else say(f"queued  {job.id}")


def cancel(
    target: Target,
    reason: Reason = "",
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Ends jobs for good; a training saves a snapshot first."""
    with connect(server, token_file) as client:
        _act(client, client.cancel, "cancel", target, reason=reason, as_json=json)


def give_up(
    target: Target,
    reason: Reason = "",
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Gives up results that a worker could not upload yet, say because the server's disk is full.

    The run ends without them.
    """
    with connect(server, token_file) as client:
        _act(client, client.give_up, "give-up", target, reason=reason, as_json=json)


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
    wait: Wait = False,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Queues an evaluation of a run's snapshot, or with --follow of all that it will write."""
    if not follow and (on_train_data or throttle or delay or again):
        usage("--on-train-data, --throttle, --delay and --again go with --follow")
    if follow and snapshot != "newest":
        usage("--follow takes the snapshots as they come: leave out --snapshot")
    if again and throttle < 1:
        usage("--again goes on without end: give --throttle of 1 or more")
    if on_train_data and (seed is not None or again):
        usage("--on-train-data has the training's own episodes: leave out --seed and --again")
    with connect(server, token_file) as client:
        if follow:
            options = EvaluateOptions(
                episodes=episodes,
                seed=seed,
                throttle_seconds=throttle,
                delay_seconds=delay,
                only_once=not again,
            )
            job = client.follow(run, options, on_train_data=on_train_data, pool=pool)
        else:
            job = client.evaluate(run, snapshot=snapshot, episodes=episodes, seed=seed, pool=pool)
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
    wait: Wait = False,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Queues an export of a run's snapshot: files that hold only what is needed to act."""
    wanted = _formats(formats or [])
    with connect(server, token_file) as client:
        job = client.export(run, wanted, snapshot=snapshot, pool=pool)
        if wait:
            job = _ended(client, job)
        emit_json(job) if json else say(f"{'exported' if wait else 'queued'}  {job.id}")


def archive(
    experiment: Annotated[str, typer.Argument(metavar="EXPERIMENT")],
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Hides an experiment from lists.

    Nothing is deleted, and `palestra unarchive` brings it back.
    """
    with connect(server, token_file) as client:
        changed = client.archive(experiment)
    emit_json(changed) if json else say(f"archived  {changed.id}")


def unarchive(
    experiment: Annotated[str, typer.Argument(metavar="EXPERIMENT")],
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Brings an archived experiment back into lists."""
    with connect(server, token_file) as client:
        changed = client.unarchive(experiment)
    emit_json(changed) if json else say(f"back in lists  {changed.id}")


def _print_result(
    client: Client, run: str, job: JobView, *, wait: bool, as_json: bool, many: bool = False
) -> None:
    if not wait:
        emit_json(job) if as_json else say(f"queued  {job.id}")
        return
    job = _ended(client, job)
    made = sorted(
        (row for row in client.evaluations(run) if row.job_id == job.id),
        key=lambda row: row.env_step,
    )
    if as_json:
        emit_json(made if many else made[0])
        return
    cells = [
        [
            f"{row.env_step:,}",
            row.episodes,
            number(row.mean),
            spread(row.stdev, row.episodes),
            *(number(value) for value in (row.min, row.median, row.max)),
        ]
        for row in made
    ]
    headings = ("env_step", "episodes", "mean", "stdev", "min", "median", "max")
    show(table(headings, cells, numbers=headings))


def _formats(named: Sequence[str]) -> tuple[ExportFormat, ...]:
    unknown = [name for name in named if name not in get_args(ExportFormat)]
    if unknown:
        usage(
            "--format: there is no format "
            f"{unknown[0]!r}{nearest(unknown[0], get_args(ExportFormat))}; give {_FORMATS}"
        )
    if len(set(named)) < len(named):
        usage("--format: name each format once")
    return tuple(cast("ExportFormat", name) for name in named)


def _ended(client: Client, job: JobView) -> JobView:
    """Waits until the job has succeeded; fails with the reason if it does not."""
    job = client.wait(job.id)
    if job.state is not JobState.SUCCEEDED:
        exit_code = CANCELLED if job.state is JobState.CANCELLED else FAILURE
        raise CommandError(f"{job.id} {job.state}: {cause_of(job.cause, job.failure)}", exit_code)
    return job


def _act(
    client: Client,
    action: Callable[[str, str], JobView],
    verb: str,
    target: str,
    *,
    reason: str,
    as_json: bool,
) -> None:
    """Acts on every named job, also where the server refuses one of them.

    Raises:
        CommandError: Behind the output, if the server refused some; names each with the reason.
    """
    changed: list[JobView] = []
    refused: list[str] = []
    for job_id in _jobs(client, verb, target):
        try:
            changed.append(action(job_id, reason))
        except (ConflictError, NotFoundError) as refusal:
            if job_id == target:
                raise
            refused.append(f"{job_id}: {refusal}")
    _print_changed(changed, target, as_json=as_json)
    if refused:
        raise CommandError(
            f"{len(refused)} of {len(changed) + len(refused)} jobs were not {_DONE[verb]}:\n  "
            + "\n  ".join(refused)
        )


def _print_changed(changed: Sequence[JobView], target: str, *, as_json: bool) -> None:
    if as_json:
        emit_json(changed)
        return
    for job in changed:
        if target.startswith("run_") and len(job.run_ids) > 1:
            say(
                f"{target} trains in a pack: this was done to all {len(job.run_ids)} runs of "
                f"{job.id}"
            )
    show(table(("job", "state"), [(job.id, state(job.state)) for job in changed]))


def _jobs(client: Client, verb: str, target: str) -> list[str]:
    if target.startswith("job_"):
        return [target]
    wanted = _NEEDS.get(verb, frozenset(JobState) - FINAL_JOB_STATES)
    if target.startswith("run_"):
        client.run(target)
        found = client.jobs(run_id=target)
    else:
        client.experiment(target)
        found = client.jobs(experiment_id=target)
    jobs = [job.id for job in found if job.state in wanted and _is_meant(verb, job)]
    if not jobs:
        raise CommandError(f"{target} has no job to {verb}")
    return jobs


def _is_meant(verb: str, job: JobView) -> bool:
    if verb == "give-up":
        return job.not_uploaded is not None and job.not_uploaded.delivering
    return verb != "pause" or job.schedule.writes_training_state
