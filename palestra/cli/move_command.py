"""`palestra move`: moves an experiment to another project."""

from typing import Annotated

import typer
from pydantic import ValidationError

from palestra.cli.output import emit_json, fail_usage, say
from palestra.cli.server_address import Json, Server, TokenFile, connect
from palestra.contract.moves import MoveRequest


def register(app: typer.Typer) -> None:
    """Adds the command of this module to a group."""
    app.command()(move)


def move(
    experiment: Annotated[str, typer.Argument(metavar="EXPERIMENT")],
    to: Annotated[str, typer.Option(metavar="PROJECT", help="Slug of the other project.")],
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Moves an experiment with its runs, jobs, curves and files; its jobs must have ended.

    For maintainers of both projects.
    """
    try:
        MoveRequest(to=to)
    except ValidationError:
        fail_usage(f"--to {to}: this is no slug of a project; `palestra projects list` names yours")
    with connect(server, token_file) as client:
        moved = client.move_experiment(experiment, to)
    emit_json(moved) if json else say(f"moved  {moved.id} to {moved.project}")
