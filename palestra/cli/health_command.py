"""`palestra health`: what is wrong with the training of a run."""

from typing import Annotated

import typer

from palestra.cli.output import emit_json, say
from palestra.cli.server_address import Json, Project, Server, TokenFile, connect


def register(app: typer.Typer) -> None:
    """Adds the command of this module to a group."""
    app.command("health")(show_health)


def show_health(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Run ID.")],
    project: Project = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Says what is wrong with a run's training by its curves, and what to try."""
    with connect(server, token_file, project) as client:
        found = client.health(run)
    if json:
        return emit_json(found)
    for finding in found.findings:
        say(f"{finding.sentence} {finding.remedy}")
    if not found.findings:
        say(
            f"nothing found in {len(found.series)} series"
            if found.series
            else "the run has no series to judge yet"
        )
    return None
