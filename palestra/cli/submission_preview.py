"""Output of `palestra submit --preview`, and times of start in words."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from palestra.cli.output import emit_json, say, warn
from palestra.contract.durations import describe_duration
from palestra.contract.queue import EstimateAccuracy, StartEstimate, SubmissionPreview
from palestra.contract.sizes import format_count
from palestra.contract.views import SubmissionWarning

_MAX_SEEDS: Final = 20
"""Seeds that are printed."""


def print_warnings(warnings: Sequence[SubmissionWarning]) -> None:
    """Prints the warnings about a submission."""
    for warning in warnings:
        warn(f"warning: {warning.pointer.removeprefix('/').replace('/', '.')}: {warning.message}")


def print_preview(found: SubmissionPreview, *, as_json: bool) -> None:
    """Prints the jobs that a submission would queue, and when they would start."""
    print_warnings(found.warnings)
    if as_json:
        return emit_json(found)
    say(f"{'experiment exists' if found.exists else 'new experiment'}  {found.experiment_id}")
    if found.jobs:
        pool = f"pool {found.pool}, class {found.priority_class.value}"
        say(f"would queue     {format_count(found.jobs, 'job')} ({pool})")
        say(f"seeds           {_list_seeds(found.seeds)}{_describe_packs(found.packs)}")
    say(f"start           {_describe_start(found)}")
    return None


def _describe_start(found: SubmissionPreview) -> str:
    first, last = found.first, found.last
    if first is None or first.median is None or first.latest is None:
        return found.sentence
    more = "more than " if found.ahead_is_cut else ""
    behind = f", behind {more}{format_count(found.ahead, 'job')}" if found.ahead else ""
    until = f" (by {format_clock(first.latest)} with 90 %)"
    text = f"would start at about {format_clock(first.median)}{behind}{until}"
    if found.jobs > 1 and last is not None:
        text += (
            f"; its last job at about {format_clock(last.median)}"
            if last.median is not None
            else f"; its last job: {last.unknown}"
        )
    return text


def describe_estimate(estimate: StartEstimate) -> str:
    """Returns when a job is expected to start, in local time."""
    if estimate.median is None or estimate.earliest is None or estimate.latest is None:
        return f"Start: unknown. {estimate.unknown}"
    times = (estimate.median, estimate.earliest, estimate.latest)
    median, earliest, latest = (format_clock(one) for one in times)
    return f"Start: about {median}, between {earliest} and {latest} with 80 %."


def describe_accuracy(accuracy: EstimateAccuracy) -> str:
    """Returns error and coverage of earlier estimates, as a sentence."""
    error = describe_duration(accuracy.median_error_seconds or 0.0)
    return (
        f"{accuracy.coverage or 0.0:.0%} of {accuracy.starts:,} starts within their interval, "
        f"median error {error}"
    )


def format_clock(moment: datetime) -> str:
    """Returns a moment in local time, with the date unless it is today."""
    local, today = moment.astimezone(), datetime.now().astimezone().date()
    return f"{local:%H:%M}" if local.date() == today else f"{local:%Y-%m-%d %H:%M}"


def _list_seeds(seeds: Sequence[int]) -> str:
    shown = ", ".join(map(str, seeds[:_MAX_SEEDS]))
    return shown if len(seeds) <= _MAX_SEEDS else f"{shown} and {len(seeds) - _MAX_SEEDS:,} more"


def _describe_packs(packs: Sequence[int]) -> str:
    if max(packs) == 1:
        return ""
    return f" in packs of {', '.join(map(str, packs[:_MAX_SEEDS]))}"
