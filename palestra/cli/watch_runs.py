"""`palestra watch`: the progress of an experiment's runs until all of them ended.

The demo shows the same bars.
"""

import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Self

import typer
from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from palestra.cli.output import (
    CANCELLED,
    FAILURE,
    describe_backlog,
    describe_cause,
    emit_json_line,
    format_mean_and_spread,
    format_number,
    out,
    say,
)
from palestra.cli.server_address import Json, Server, TokenFile, connect
from palestra.client import Client
from palestra.contract.resources import RunView
from palestra.contract.states import RunState


def register(app: typer.Typer) -> None:
    """Adds the command of this module to a group."""
    app.command()(watch)


def watch(
    target: Annotated[str, typer.Argument(metavar="EXPERIMENT|RUN")],
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Shows a progress bar and the latest evaluation per seed until all runs have ended.

    Runs that failed are listed with the cause.

    Exit code 1 if a run failed; else 3 if one was cancelled.
    """
    with connect(server, token_file) as client:
        experiment = client.run(target).experiment_id if target.startswith("run_") else target
        raise typer.Exit(follow(client, experiment, as_json=json))


def follow(client: Client, experiment_id: str, *, as_json: bool) -> int:
    """Shows the runs of an experiment until all ended, and why they failed.

    Returns the exit code.
    """
    runs: list[RunView] = []
    with Board(as_json=as_json) as board:
        for runs in client.watch(experiment_id, period=0.5):
            board.show(runs)
    if not as_json:
        _print_failures([run for run in runs if run.state is RunState.FAILED])
    states = {run.state for run in runs}
    return (
        FAILURE if RunState.FAILED in states else CANCELLED if RunState.CANCELLED in states else 0
    )


def _print_failures(failed: Sequence[RunView]) -> None:
    """Prints each reason once, with the seeds that failed for it."""
    by_reason: dict[str, list[RunView]] = {}
    for run in failed:
        by_reason.setdefault(describe_cause(run.cause, run.failure), []).append(run)
    for words, runs in by_reason.items():
        seeds = ", ".join(str(run.seed) for run in runs)
        say(
            f"\nfailed: seed{'s' if len(runs) > 1 else ''} {seeds}\n  {words}\n  more with: "
            f"palestra show {runs[0].id}"
        )


class Board:
    """Progress bars on a terminal; elsewhere one line per notable change. Starts no thread.

    Args:
        as_json: Print each changed run as a line of JSON instead.
    """

    def __init__(self, *, as_json: bool = False) -> None:
        self._as_json = as_json
        self._bars: dict[str, TaskID] = {}
        self._printed: dict[str, object] = {}
        columns = (
            TextColumn("seed {task.fields[seed]}"),
            TextColumn("{task.fields[state]}", markup=False),
            BarColumn(bar_width=32),
            TextColumn("{task.fields[steps]:>9} env_steps"),
            TextColumn("{task.fields[speed]:>8}"),
            TextColumn("{task.fields[score]}", markup=False),
        )
        self._progress = Progress(*columns, auto_refresh=False, console=out)
        self._live: Live | None = None
        if not as_json and out.is_terminal and sys.stdout.isatty():
            self._live = Live(
                Group(self._progress), console=out, auto_refresh=False, transient=False
            )

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, runs: Iterable[RunView]) -> None:
        """Shows the current state of runs."""
        for run in runs:
            if self._as_json:
                self._print_json(run)
            elif self._live is None:
                self._print_state(run)
            else:
                self._draw(run)
        if self._live is not None:
            self._live.refresh()

    def _draw(self, run: RunView) -> None:
        fields: dict[str, Any] = {
            "seed": f"{run.seed:<4}",
            "state": f"{_state(run):<9}",
            "steps": f"{run.progress.env_step:,}",
            "speed": _speed(run),
            "score": describe_backlog(run.not_uploaded) or format_score(run),
        }
        if run.id not in self._bars:
            self._bars[run.id] = self._progress.add_task("", total=1.0, **fields)
        done = 1.0 if run.state is RunState.SUCCEEDED else run.progress.fraction or 0.0
        self._progress.update(self._bars[run.id], completed=done, **fields)

    def _print_state(self, run: RunView) -> None:
        held = describe_backlog(run.not_uploaded)
        mark = (
            _state(run),
            run.latest_evaluation.id if run.latest_evaluation else None,
            held.partition(" (")[0],
        )
        if self._printed.get(run.id) != mark:
            self._printed[run.id] = mark
            place = f"seed {run.seed:<4} {_state(run):<9} {run.progress.env_step:>9,} env_steps"
            why = describe_cause(run.cause, run.failure) if run.failure is not None else held
            say("  ".join(part for part in (place, format_score(run), why) if part))

    def _print_json(self, run: RunView) -> None:
        if self._printed.get(run.id) != run:
            self._printed[run.id] = run
            emit_json_line(run)


def _state(run: RunView) -> str:
    """Returns the state of a run; what its trainer does as long as it does not train."""
    return run.phase or run.state


def _speed(run: RunView) -> str:
    speed = run.progress.env_steps_per_second
    is_training = run.state is RunState.RUNNING and run.phase is None
    return f"{speed:,.0f}/s" if is_training and speed is not None else ""


def format_score(run: RunView) -> str:
    """Returns the latest evaluation of a run in words."""
    latest = run.latest_evaluation
    if latest is None:
        return ""
    if latest.metrics:
        return "  ".join(
            f"{name} {format_number(value, 4)}" for name, value in sorted(latest.metrics.items())
        )
    return f"evaluation {format_mean_and_spread(latest.mean, latest.stdev, latest.episodes)}"
