"""Options of the commands that score runs: which runs, and how evaluations become a score."""

from typing import Annotated, Literal

import typer

Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID...]", help="Experiments, or runs (run_...), or both."),
]
Filter = Annotated[
    str,
    typer.Option("--filter", metavar="FILTER", help="Runs that `palestra runs --filter` finds."),
]
Score = Annotated[
    Literal["final", "area", "max"], typer.Option(help="How evaluations become a score.")
]
