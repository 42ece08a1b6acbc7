"""`palestra play`: shows how the best snapshot of a run plays, with the packages of a worker."""

import importlib.util
import json as jsons
import os
import subprocess
import tempfile
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer

from palestra.cli.files import SnapshotOption, choose_best_or_newest
from palestra.cli.output import (
    FAILURE,
    INTERRUPTED,
    CommandError,
    emit_json,
    fail_usage,
    format_number,
    say,
)
from palestra.cli.server_address import Json, Server, TokenFile, connect
from palestra.contract.play import PlayOrder
from palestra.python_command import build_python_command


def register(app: typer.Typer) -> None:
    """Adds the command of this module to a group."""
    app.command()(play)


def play(
    run: Annotated[str, typer.Argument(metavar="RUN")],
    snapshot: SnapshotOption = None,
    episodes: Annotated[int, typer.Option(min=1, max=10_000, help="Episodes.")] = 1,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Seed that the episodes derive from.")
    ] = 0,
    video: Annotated[
        Path | None, typer.Option(metavar="FILE.mp4", dir_okay=False, help="Film them instead.")
    ] = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Plays a snapshot of a run without exploring: in a window, or into a video.

    Needs the worker's packages on this machine.
    """
    if video is not None and (video.suffix != ".mp4" or not video.absolute().parent.is_dir()):
        fail_usage(f"--video {video}: name a file that ends in .mp4, in a directory that exists")
    if missing := [
        name for name in ("workers", "torch", "gymnasium") if importlib.util.find_spec(name) is None
    ]:
        raise CommandError(f"{', '.join(missing)} not installed: pip install 'palestra[worker]'")
    with tempfile.TemporaryDirectory(prefix="palestra-play-") as scratch:
        with connect(server, token_file) as client:
            found = client.run(run)
            path = client.download_snapshot(
                run, Path(scratch), snapshot=snapshot or choose_best_or_newest(client, run)
            )
            code = client.experiment(found.experiment_id).code
        film = None if video is None else str(video.absolute())
        order = PlayOrder(
            definition=found.definition,
            code=code,
            snapshot=str(path),
            episodes=episodes,
            seed=seed,
            video=film,
        )
        if not json:
            say(f"{found.definition.name}, seed {found.seed}, snapshot {path.name}")
        played = _play(Path(scratch) / "play.json", order, quiet=json)
    if json:
        emit_json({"run_id": run, "snapshot_id": path.name, "video": film, "episodes": played})
    elif video is not None:
        say(f"video  {video}")


def _play(file: Path, order: PlayOrder, *, quiet: bool) -> list[dict[str, Any]]:
    """Runs the player and prints each episode as it ends.

    Raises:
        CommandError: If the player fails; it has printed the reason.
    """
    file.write_text(order.model_dump_json(), "utf-8")
    played: list[dict[str, Any]] = []
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in {"PALESTRA_TOKEN", "PALESTRA_TOKEN_FILE"}
    }
    command = build_python_command("workers.play", str(file))
    with subprocess.Popen(  # noqa: S603 - the command is our own module
        command, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            played.append(jsons.loads(line))
            if not quiet:
                say(
                    "episode {episode:<4} return {return:,.1f}  length {length:,}".format(
                        **played[-1]
                    )
                )
    if process.returncode:
        raise CommandError(
            "the episodes could not be played",
            INTERRUPTED if process.returncode in {-2, INTERRUPTED} else FAILURE,
        )
    if not quiet and len(played) > 1:
        mean = format_number(fmean(one["return"] for one in played))
        say(f"mean return {mean} over {len(played)} episodes")
    return played
