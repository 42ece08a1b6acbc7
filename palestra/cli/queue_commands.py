"""Commands about the queue of a pool: `palestra explain`."""

from typing import Annotated

import typer

from palestra.cli.output import build_table, emit_json, say, show
from palestra.cli.server_address import Json, Server, TokenFile, connect
from palestra.contract.queue import JobExplanation, QueueTerms

_HOUR = 3_600


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(explain)


def explain(
    job: Annotated[str, typer.Argument(metavar="JOB", help="ID of a job.")],
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Says why a job has not started, and what decides its place in the queue."""
    with connect(server, token_file) as client:
        found = client.explain_job(job)
    if json:
        return emit_json(found)
    say(found.sentence)
    if found.terms is not None:
        show(build_table(("what is compared, in this order", "value"), _rows(found, found.terms)))
    return None


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
        ("seed of the experiment", f"number {terms.seed_index + 1}"),
        ("queued at", f"{terms.queued_at:%Y-%m-%d %H:%M:%S}"),
        ("jobs that start before it", f"{found.ahead:,}{more}"),
    ]
    if found.own_ahead:
        rows.append(("of these you may read", ", ".join(found.own_ahead)))
    return rows
