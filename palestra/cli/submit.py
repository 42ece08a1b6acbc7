"""`palestra submit`: submits a definition file as an experiment."""

import sys
from typing import Annotated, cast, get_args

import typer

from palestra.cli.documents import parse_seeds, read_submission
from palestra.cli.output import emit_json, fail_usage, say
from palestra.cli.run_jobs import After
from palestra.cli.server_address import Json, Project, Server, TokenFile, connect
from palestra.cli.submission_preview import print_preview, print_warnings
from palestra.cli.watch_runs import follow
from palestra.contract.job_options import (
    GIT_CODE_IS_NOT_TAKEN,
    DependencyCondition,
    FollowUp,
    Submission,
)
from palestra.contract.names import PriorityClass, Schedule
from palestra.provenance import capture


def register(app: typer.Typer) -> None:
    """Adds the command of this module to a group."""
    app.command()(submit)


def submit(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="YAML or JSON; - reads standard input.")
    ],
    seeds: Annotated[
        str | None, typer.Option(help="Seeds, for example 0-2 or 1,5,7; the file's by default.")
    ] = None,
    pool: Annotated[str | None, typer.Option(help="Pool of workers.")] = None,
    priority_class: Annotated[
        PriorityClass | None,
        typer.Option("--class", help="Class in the pool's queue; the file's, or normal, else."),
    ] = None,
    priority: Annotated[
        int | None, typer.Option(min=-100, max=100, help="Among your own jobs, higher goes first.")
    ] = None,
    after: After = None,
    on: Annotated[
        DependencyCondition | None,
        typer.Option("--on", help="With --after: whether the jobs have to succeed, or end anyhow."),
    ] = None,
    then: Annotated[
        str | None,
        typer.Option(metavar="JOBS", help="After each training: evaluate, export, or both."),
    ] = None,
    max_running: Annotated[
        int | None,
        typer.Option(min=1, max=10_000, help="Jobs of the experiment that run at the same time."),
    ] = None,
    schedule: Annotated[
        Schedule | None, typer.Option(help="What its jobs do; the file's, or train, by default.")
    ] = None,
    code: Annotated[str | None, typer.Option(hidden=True)] = None,
    provenance: Annotated[
        bool, typer.Option(help="Record command, git state, packages and machine.")
    ] = True,
    with_untracked: Annotated[
        bool,
        typer.Option(
            "--with-untracked", help="Record what untracked files hold, not only their names."
        ),
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show the progress until all runs ended.")
    ] = False,
    preview: Annotated[
        bool,
        typer.Option("--preview", help="Submit nothing; say what would be queued, and its start."),
    ] = False,
    project: Project = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Submits a definition.

    The same definition and code give the same experiment; missing seeds are added.
    """
    if code is not None:
        fail_usage(f"--code: {GIT_CODE_IS_NOT_TAKEN}")
    submission = _with_options(
        read_submission(file),
        seeds=seeds,
        pool=pool,
        priority_class=priority_class,
        priority=priority,
        max_running=max_running,
        after=tuple(after) if after else None,
        on=on,
        then=_parse_follow_ups(then),
        schedule=schedule,
    )
    if provenance and not submission.provenance:
        submission = submission.model_copy(
            update={"provenance": capture(sys.argv, with_untracked=with_untracked)}
        )
    with connect(server, token_file, project) as client:
        if preview:
            return print_preview(client.preview_document(submission), as_json=json)
        experiment, created = client.submit_document(submission)
        print_warnings(experiment.warnings)
        if json and not watch:
            return emit_json(experiment)
        if not json:
            _print_redactions(submission)
            say(
                f"{'new experiment' if created else 'experiment exists'}  {experiment.id}  "
                f"({sum(experiment.runs.values())} runs)"
            )
        if watch:
            raise typer.Exit(follow(client, experiment.id, as_json=json))
    return None


def _print_redactions(submission: Submission) -> None:
    """Prints how many secrets were removed from the recorded provenance."""
    if count := submission.provenance.get("redactions"):
        say(
            f"provenance      {count} {'secret was' if count == 1 else 'secrets were'} replaced by "
            "[redacted]; see palestra provenance RUN"
        )


def _parse_follow_ups(text: str | None) -> tuple[FollowUp, ...] | None:
    """Returns the jobs to queue after each training, in their order."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if len(set(names)) != len(names) or not set(names) <= set(get_args(FollowUp)):
        fail_usage(f"--then {text}: give evaluate, export, or both with a comma in between")
    return tuple(cast("FollowUp", name) for name in names)


def _with_options(
    submission: Submission, *, seeds: str | None, schedule: Schedule | None, **named: object
) -> Submission:
    if schedule is not None and not schedule.starts_runs:
        fail_usage(
            f"--schedule {schedule.value} reads the snapshots of a run: submit a training, then "
            "see palestra evaluate --help"
        )
    changes = {
        "seeds": parse_seeds(seeds) if seeds is not None else None,
        "schedule": schedule,
        **named,
    }
    options = submission.options.model_copy(
        update={name: value for name, value in changes.items() if value is not None}
    )
    return submission.model_copy(update={"options": options})
