"""Commands about jobs that wait: `palestra explain | reorder | limit`."""

from typing import Annotated, Final

import typer

from palestra.cli.change_command import print_job
from palestra.cli.change_preview import Preview, print_preview
from palestra.cli.output import build_table, emit_json, fail_usage, say, show
from palestra.cli.request_documents import read_request
from palestra.cli.server_address import Json, Server, TokenFile, connect
from palestra.cli.submission_preview import describe_accuracy, describe_estimate
from palestra.contract.job_changes import ExperimentChange
from palestra.contract.queue import JobExplanation, QueueTerms

_HOUR: Final = 3_600

Job = Annotated[str, typer.Argument(metavar="JOB", help="ID of a job that waits.")]


def register(app: typer.Typer) -> None:
    """Adds the commands of this module to a group."""
    for command in (explain, reorder, limit):
        app.command()(command)


def explain(
    job: Annotated[str, typer.Argument(metavar="JOB", help="ID of a job.")],
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Shows why a job has not started, and what decides its place in the queue."""
    with connect(server, token_file) as client:
        found = client.explain_job(job)
    if json:
        return emit_json(found)
    say(found.sentence)
    if found.estimate is not None:
        say(describe_estimate(found.estimate))
    if found.terms is not None:
        show(build_table(("what is compared, in this order", "value"), _rows(found, found.terms)))
    return None


def reorder(
    job: Job,
    before: Annotated[
        str | None, typer.Option(metavar="JOB", help="Start directly before this job of yours.")
    ] = None,
    last: Annotated[
        bool, typer.Option("--last", help="Start after your other jobs of its class.")
    ] = False,
    preview: Preview = False,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Moves a waiting job among your own jobs of the same pool, project and class.

    The order between persons follows their usage. A maintainer of the project can move a job before
    a job of another person, which gives the moved job the class urgent.
    """
    if (before is not None) == last:
        fail_usage("give either --before JOB or --last")
    with connect(server, token_file) as client:
        if preview:
            print_preview(client.preview_reorder(job, before), as_json=json)
        else:
            print_job(client.reorder_job(job, before), as_json=json)


def limit(
    experiment: Annotated[str, typer.Argument(metavar="EXPERIMENT")],
    max_running: Annotated[
        str, typer.Option(metavar="NUMBER", help="Jobs that run at the same time; or none.")
    ],
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Limits how many jobs of an experiment run at the same time; running jobs go on."""
    most = None if max_running == "none" else max_running
    if most is not None and not most.isdecimal():
        fail_usage(f"--max-running {max_running}: give a number, or none")
    wanted = {"max_running": None if most is None else int(most)}
    request = read_request(ExperimentChange, wanted)
    with connect(server, token_file) as client:
        changed = client.change_experiment(experiment, request)
    if json:
        return emit_json(changed)
    many = "any number of jobs" if changed.max_running is None else f"{changed.max_running} jobs"
    return say(f"{changed.id}  runs {many} at the same time")


def _rows(found: JobExplanation, terms: QueueTerms) -> list[tuple[str, str]]:
    more = " or more" if found.ahead_is_cut else ""
    rows = [
        ("class", terms.priority_class.value),
        (
            "usage of the project for its share of the pool",
            f"{terms.project_usage / _HOUR:.2f} device-hours for {terms.project_share:.0%}",
        ),
        ("usage of the person in the project", f"{terms.user_usage / _HOUR:.2f} device-hours"),
        ("priority among the person's own jobs", str(terms.priority)),
        ("place by hand among those of the same priority", str(terms.own_place)),
        ("seed of the experiment", f"number {terms.seed_index + 1}"),
        ("queued at", f"{terms.queued_at:%Y-%m-%d %H:%M:%S}"),
        ("jobs that start before it", f"{found.ahead:,}{more}"),
    ]
    if found.accuracy is not None and found.accuracy.starts:
        rows.append(("earlier estimates in this pool", describe_accuracy(found.accuracy)))
    if found.own_ahead:
        rows.append(("of these you may read", ", ".join(found.own_ahead)))
    return rows
