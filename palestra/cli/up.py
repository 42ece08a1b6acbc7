"""`palestra up`: runs a server and a worker on this machine until stopped."""

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from palestra.cli.embedded.instance import Instance, InstanceOptions
from palestra.cli.output import emit_json_line, say, warn
from palestra.cli.server_address import DEFAULT_DATA_DIR, Json

DataDirOption = Annotated[
    Path,
    typer.Option(
        "--data-dir",
        help="Where everything lies; `.palestra` in this directory by default.",
        file_okay=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the command of this module to a group."""
    app.command()(up)


def up(
    data_dir: DataDirOption = Path(DEFAULT_DATA_DIR),
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Port of the server; 0 takes a free one.")
    ] = None,
    slots: Annotated[
        int | None,
        typer.Option(
            min=1, max=1_024, help="Trainings at once; one per core by default, at most 8."
        ),
    ] = None,
    gpus: Annotated[str, typer.Option(help="GPUs of the worker, for example 0,1.")] = "",
    imports: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="MODULE",
            help="Module that registers environments; may be given several times.",
        ),
    ] = None,
    allowed_paths: Annotated[
        list[Path] | None,
        typer.Option(
            "--allow-path",
            metavar="DIR",
            help=(
                "Directory whose files definitions may name in env.kwargs; may be given several "
                "times."
            ),
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Starts server, daemons, Valkey and one worker on this machine, and serves until stopped."""
    slots = slots or min(8, os.cpu_count() or 1)
    report = warn if json else say
    instance = Instance(
        InstanceOptions(
            data_dir=data_dir,
            port=port,
            slots=slots,
            gpus=gpus,
            imports=tuple(imports or ()),
            allowed_paths=tuple(allowed_paths or ()),
        ),
        report,
    )
    if not json:
        say(f"Palestra is starting on {instance.data.root} ...")
    with instance.run():
        link = instance.login_url
        if json:
            emit_json_line(
                {
                    "url": instance.url,
                    "login_url": link,
                    "data_dir": str(instance.data.root),
                    "pid": os.getpid(),
                }
            )
        else:
            say(
                f"\n  Palestra serves at {instance.url}\n  Log in, once, with  {link}\n  Data lies "
                f"in        {instance.data.root}\n"
            )
            say("Ctrl-C stops it.")
        while True:
            instance.restart_ended()
            time.sleep(0.2)
