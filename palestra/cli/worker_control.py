"""Commands that manage workers: `palestra forget-worker | rotate-worker-secret`."""

from typing import Annotated

import typer

from palestra.cli.output import emit_json, fail_usage, say
from palestra.cli.server_address import Json, Server, TokenFile, connect
from palestra.client import Client
from palestra.contract.pools import WorkerView
from palestra.contract.problems import suggest_nearest


def register(app: typer.Typer) -> None:
    """Adds the commands of this module to a group."""
    app.command("forget-worker")(forget)
    app.command("rotate-worker-secret")(rotate)


def forget(
    worker: Annotated[str, typer.Argument(metavar="WORKER", help="Name or ID of a worker.")],
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Revokes a worker's secret, so that its name can be enrolled again at once."""
    with connect(server, token_file) as client:
        found = client.forget_worker(_find(client, worker).id)
    emit_json(found) if json else say(f"{found.name} can be enrolled again")


def rotate(
    worker: Annotated[str, typer.Argument(metavar="WORKER", help="Name or ID of a worker.")],
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Gives a worker a new secret with its next heartbeat; the worker needs no restart."""
    with connect(server, token_file) as client:
        found = client.rotate_worker_secret(_find(client, worker).id)
    if json:
        return emit_json(found)
    if found.secret_rotation == "unsupported":  # noqa: S105 - not a secret
        return say(f"{found.name} keeps its secret until it is upgraded: version {found.version}")
    return say(f"{found.name} gets a new secret with its next heartbeat")


def _find(client: Client, wanted: str) -> WorkerView:
    workers = list(client.workers())
    found = next((worker for worker in workers if wanted in {worker.name, worker.id}), None)
    nearest = suggest_nearest(wanted, [worker.name for worker in workers])
    return found or fail_usage(f"there is no worker {wanted!r}{nearest}")
