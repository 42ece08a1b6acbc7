"""Acts on all runs that fit a filter: `palestra pause | resume | cancel | retry --filter`."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

import typer

from palestra.cli.list_options import check_filter
from palestra.cli.output import CommandError, emit_json, fail_usage, say
from palestra.client import Client
from palestra.contract.run_batches import RunsActed, RunSelection, RunVerb

RunFilter = Annotated[
    str | None,
    typer.Option("--filter", help="All runs that fit a filter, as of `palestra runs --filter`."),
]

_STATES: Final = {
    RunVerb.PAUSE: "queued or running",
    RunVerb.RESUME: "paused",
    RunVerb.CANCEL: "queued, running or paused",
    RunVerb.RETRY: "failed or cancelled",
}
"""States in which an action changes a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsRequest:
    """What to do with the runs that fit a filter."""

    verb: RunVerb
    filters: str
    dry_run: bool
    is_confirmed: bool
    as_json: bool
    reason: str = ""
    origin: Literal["newest", "start"] = "newest"


def act_on_runs(client: Client, request: RunsRequest) -> None:
    """Acts on all runs that fit, or counts them.

    Raises:
        CommandError: After the output, if the server refused some; names each with the reason.
    """
    check_filter(request.filters, "runs")
    selection, verb = RunSelection(filter=request.filters), request.verb
    if request.dry_run or not request.is_confirmed:
        counted = client.act_on_runs(verb, selection, dry_run=True)
        if not request.dry_run and counted.matched:
            fail_usage(f"{_count(counted, verb)} Repeat the command with --yes to {verb} them.")
        emit_json(counted) if request.as_json else say(_count(counted, verb))
        return
    acted = client.act_on_runs(verb, selection, origin=request.origin, reason=request.reason)
    done = f"{len(acted.done):,} of {acted.matched:,} runs: asked to {verb}"
    if acted.matched == 0:
        done = _count(acted, verb)
    emit_json(acted) if request.as_json else say(done)
    if acted.refused:
        raise CommandError(
            f"{len(acted.refused)} of {acted.matched} runs were refused:\n  "
            + "\n  ".join(f"{one.run_id}: {one.detail}" for one in acted.refused)
        )


def _count(counted: RunsActed, verb: RunVerb) -> str:
    if counted.matched == 0:
        parts = [f"No run that fits the filter is {_STATES[verb]}: there is nothing to {verb}"]
    else:
        parts = ["1 run matches" if counted.matched == 1 else f"{counted.matched:,} runs match"]
    if counted.same_jobs:
        parts.append(f"{counted.same_jobs:,} more train in the same packs and go with them")
    if counted.not_permitted:
        parts.append(
            f"{counted.not_permitted:,} more are of other people, whose runs you may not {verb}"
        )
    return ". ".join(parts) + "."
