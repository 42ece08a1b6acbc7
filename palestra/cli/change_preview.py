"""Output of `--preview` of the commands that change waiting jobs."""

from typing import Annotated

import typer

from palestra.cli.output import build_table, emit_json, say, show, warn
from palestra.cli.submission_preview import format_clock
from palestra.contract.change_preview import ChangePreview, PreviewedStart
from palestra.contract.queue import StartEstimate

Preview = Annotated[
    bool, typer.Option("--preview", help="Say what would change in the queue, and change nothing.")
]


def print_preview(found: ChangePreview, *, as_json: bool) -> None:
    """Prints what a change of waiting jobs would do."""
    if as_json:
        return emit_json(found)
    say(found.sentence)
    rows = [
        *(("", *_describe(one)) for one in found.starts),
        *(("yours, not changed", *_describe(one)) for one in found.own_starts),
    ]
    if rows:
        show(build_table(("", "job", "place", "then", "start", "then"), rows))
    if found.jobs_left:
        warn(f"{found.jobs_left:,} further jobs match; the preview takes {found.jobs:,}")
    for refused in found.refused:
        warn(f"{refused.job_id}: {refused.detail}")
    return None


def _describe(one: PreviewedStart) -> tuple[str, ...]:
    places = ("-" if place is None else f"{place:,}" for place in (one.place, one.new_place))
    return one.job_id, *places, _start(one.start), _start(one.new_start)


def _start(estimate: StartEstimate) -> str:
    return "unknown" if estimate.median is None else f"about {format_clock(estimate.median)}"
