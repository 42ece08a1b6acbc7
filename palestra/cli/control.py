"""Commands that change queued and running jobs, or hide experiments.

`palestra pause | resume | retry | cancel | give-up | archive | unarchive`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Final, Literal

import typer

from palestra.cli.output import (
    CommandError,
    build_table,
    emit_json,
    fail_usage,
    format_state,
    say,
    show,
)
from palestra.cli.selected_jobs import (
    Class,
    DryRun,
    Mine,
    Pool,
    SelectionOptions,
    State,
    User,
    Yes,
    act_on_selection,
)
from palestra.cli.selected_runs import RunFilter, RunsRequest, act_on_runs
from palestra.cli.server_address import Json, Server, TokenFile, connect
from palestra.client import Client
from palestra.contract.job_batches import JobVerb
from palestra.contract.resources import CancelledJobView, JobView
from palestra.contract.run_batches import RunVerb
from palestra.contract.states import FINAL_JOB_STATES, JobState
from palestra.errors import ConflictError, NotFoundError

Targets = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[JOB|RUN|EXPERIMENT]...",
        help="Jobs; the unfinished jobs of runs and experiments. Or the options that select jobs.",
    ),
]
Target = Annotated[
    str,
    typer.Argument(
        metavar="JOB|RUN|EXPERIMENT",
        help="A job; a run's or all of an experiment's unfinished jobs.",
    ),
]
CodeChange = Annotated[
    bool,
    typer.Option(
        "--allow-code-change", help="Go on with the workers' code where it is not the experiment's."
    ),
]
Reason = Annotated[str, typer.Option(help="Kept with the change.")]

_Action = Callable[[str, str], JobView | CancelledJobView]

_DONE: Final = {
    "pause": "paused",
    "resume": "resumed",
    "cancel": "cancelled",
    "give-up": "given up",
}
_NEEDS: Final = {
    "pause": frozenset(JobState) - FINAL_JOB_STATES - {JobState.PAUSED},
    "resume": frozenset({JobState.PAUSED}),
}


def register(app: typer.Typer) -> None:
    """Adds the commands of this module to a group."""
    for command in (pause, resume, retry, cancel, archive, unarchive):
        app.command()(command)
    app.command("give-up")(give_up)


def pause(
    targets: Targets = None,
    reason: Reason = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until it has saved its snapshot and stopped.")
    ] = False,
    mine: Mine = False,
    user: User = None,
    pool: Pool = None,
    priority_class: Class = None,
    state: State = None,
    filters: RunFilter = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Pauses a training after a snapshot, from which `palestra resume` continues."""
    options = SelectionOptions(
        mine=mine,
        user=user,
        pool=pool,
        priority_class=priority_class,
        states=tuple(state or ()),
        filters=filters,
        dry_run=dry_run,
        is_confirmed=yes,
    )
    with connect(server, token_file) as client:

        def action(job_id: str, reason: str) -> JobView:
            job = client.pause(job_id, reason)
            return client.wait(job_id, paused=True) if wait else job

        request = _Request(verb=JobVerb.PAUSE, reason=reason, as_json=json)
        _act_on_targets(client, action, request, targets, options)


def resume(
    targets: Targets = None,
    reason: Reason = "",
    allow_code_change: CodeChange = False,
    mine: Mine = False,
    user: User = None,
    pool: Pool = None,
    priority_class: Class = None,
    state: State = None,
    filters: RunFilter = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Queues a paused job again."""
    options = SelectionOptions(
        mine=mine,
        user=user,
        pool=pool,
        priority_class=priority_class,
        states=tuple(state or ()),
        filters=filters,
        dry_run=dry_run,
        is_confirmed=yes,
    )
    with connect(server, token_file) as client:
        action = partial(client.resume, allow_code_change=allow_code_change)
        request = _Request(verb=JobVerb.RESUME, reason=reason, as_json=json)
        _act_on_targets(client, action, request, targets, options)


def retry(
    run: Annotated[
        str | None,
        typer.Argument(metavar="[RUN]", help="A run that failed or was cancelled. Or --filter."),
    ] = None,
    origin: Annotated[
        Literal["newest", "start"],
        typer.Option("--from", help="Go on from the newest verified snapshot, or begin anew."),
    ] = "newest",
    reason: Reason = "",
    allow_code_change: CodeChange = False,
    filters: RunFilter = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Trains a failed run again, from its newest snapshot or, if it has none, from the start."""
    if (run is None) is (filters is None):
        fail_usage("give a run, or --filter with --yes for all runs that fit")
    with connect(server, token_file) as client:
        if filters is not None:
            wanted = RunsRequest(
                verb=RunVerb.RETRY,
                filters=filters,
                dry_run=dry_run,
                is_confirmed=yes,
                as_json=json,
                reason=reason,
                origin=origin,
            )
            return act_on_runs(client, wanted)
        assert run is not None
        job = client.retry(run, origin=origin, allow_code_change=allow_code_change, reason=reason)
    return emit_json(job) if json else say(f"queued  {job.id}")


def cancel(
    targets: Targets = None,
    reason: Reason = "",
    mine: Mine = False,
    user: User = None,
    pool: Pool = None,
    priority_class: Class = None,
    state: State = None,
    filters: RunFilter = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Cancels jobs; a training saves a snapshot first."""
    options = SelectionOptions(
        mine=mine,
        user=user,
        pool=pool,
        priority_class=priority_class,
        states=tuple(state or ()),
        filters=filters,
        dry_run=dry_run,
        is_confirmed=yes,
    )
    with connect(server, token_file) as client:
        request = _Request(verb=JobVerb.CANCEL, reason=reason, as_json=json)
        _act_on_targets(client, client.cancel_any, request, targets, options)


def give_up(
    target: Target,
    reason: Reason = "",
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Discards results that a worker could not upload, e.g. because the server's disk is full.

    The run ends without them.
    """
    with connect(server, token_file) as client:
        _act(client, client.give_up, "give-up", [target], reason=reason, as_json=json)


def archive(
    experiment: Annotated[str, typer.Argument(metavar="EXPERIMENT")],
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Hides an experiment from lists.

    Nothing is deleted, and `palestra unarchive` restores it.
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
    """Restores an archived experiment to lists."""
    with connect(server, token_file) as client:
        changed = client.unarchive(experiment)
    emit_json(changed) if json else say(f"back in lists  {changed.id}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """What is asked for, and how the answer is printed."""

    verb: JobVerb
    reason: str
    as_json: bool


def _act_on_targets(
    client: Client,
    action: _Action,
    request: _Request,
    targets: Sequence[str] | None,
    options: SelectionOptions,
) -> None:
    """Acts on the named objects, or on all jobs or runs that the options select."""
    verb = request.verb
    if options.filters is not None:
        if targets or options.has_filter:
            fail_usage("give --filter alone: its terms select the runs, for example user:me")
        wanted = RunsRequest(
            verb=RunVerb(verb.value),
            filters=options.filters,
            dry_run=options.dry_run,
            is_confirmed=options.is_confirmed,
            as_json=request.as_json,
            reason=request.reason,
        )
        return act_on_runs(client, wanted)
    if options.has_filter:
        if targets:
            fail_usage("give IDs, or options that select jobs, not both")
        return act_on_selection(
            client, verb, options, reason=request.reason, as_json=request.as_json
        )
    if not targets:
        fail_usage("give IDs of jobs, runs or experiments, or options that select jobs: --mine")
    if options.dry_run:
        jobs = {job_id for target in targets for job_id in _jobs(client, verb, target)}
        return emit_json(sorted(jobs)) if request.as_json else say(f"{len(jobs):,} jobs match.")
    return _act(client, action, verb, targets, reason=request.reason, as_json=request.as_json)


def _act(
    client: Client,
    action: _Action,
    verb: str,
    targets: Sequence[str],
    *,
    reason: str,
    as_json: bool,
) -> None:
    """Applies an action to every named job, even if the server refuses it for one of them.

    Raises:
        CommandError: After the output, if the server refused some; names each with the reason.
    """
    changed: list[JobView | CancelledJobView] = []
    refused: list[str] = []
    for target, job_id in _pair_with_jobs(client, verb, targets):
        try:
            changed.append(action(job_id, reason))
        except (ConflictError, NotFoundError) as refusal:
            if [job_id] == [*targets]:
                raise
            refused.append(f"{job_id}: {refusal}")
        else:
            _say_pack(changed[-1], target, as_json=as_json)
    _print_changed(changed, as_json=as_json)
    if refused:
        raise CommandError(
            f"{len(refused)} of {len(changed) + len(refused)} jobs were not {_DONE[verb]}:\n  "
            + "\n  ".join(refused)
        )


def _pair_with_jobs(client: Client, verb: str, targets: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields each job once, with the first target that names it."""
    seen: set[str] = set()
    for target in targets:
        for job_id in _jobs(client, verb, target):
            if job_id not in seen:
                seen.add(job_id)
                yield target, job_id


def _say_pack(job: JobView | CancelledJobView, target: str, *, as_json: bool) -> None:
    if as_json or not target.startswith("run_") or not isinstance(job, JobView):
        return
    if len(job.run_ids) > 1:
        say(f"{target} trains in a pack: this was done to all {len(job.run_ids)} runs of {job.id}")


def _print_changed(changed: Sequence[JobView | CancelledJobView], *, as_json: bool) -> None:
    if as_json:
        emit_json(changed)
        return
    show(build_table(("job", "state"), [(job.id, format_state(job.state)) for job in changed]))


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
