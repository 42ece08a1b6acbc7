"""Options that select many jobs, and how commands act on all that match."""

from dataclasses import dataclass
from typing import Annotated

import typer

from palestra.cli.output import CommandError, emit_json, fail_usage, say
from palestra.client import Client
from palestra.contract.job_batches import JobsActed, JobSelection, JobVerb
from palestra.contract.job_changes import JobChange
from palestra.contract.names import PriorityClass
from palestra.contract.states import JobState

Mine = Annotated[bool, typer.Option("--mine", help="All jobs that you submitted.")]
User = Annotated[str | None, typer.Option(help="All jobs that this user submitted: a login name.")]
Pool = Annotated[str | None, typer.Option(help="All jobs in this pool.")]
Class = Annotated[PriorityClass | None, typer.Option("--class", help="All jobs of this class.")]
State = Annotated[
    list[JobState] | None,
    typer.Option("--state", help="All jobs in this state; may be given several times."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Count the jobs and change none.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it to all jobs that the options select.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionOptions:
    """The options that select all jobs that match."""

    mine: bool
    user: str | None
    pool: str | None
    priority_class: PriorityClass | None
    states: tuple[JobState, ...]
    filters: str | None = None
    """A filter of runs, in place of all the other options."""
    dry_run: bool
    is_confirmed: bool

    @property
    def has_filter(self) -> bool:
        """Whether an option selects jobs."""
        return self.mine or bool(self.user or self.pool or self.priority_class or self.states)

    def build_selection(self) -> JobSelection:
        """Returns the selection for a request."""
        if self.mine and self.user is not None:
            fail_usage("give --mine or --user, not both")
        return JobSelection(
            pool=self.pool,
            priority_class=self.priority_class,
            states=self.states,
            user="me" if self.mine else self.user,
        )


def act_on_selection(
    client: Client,
    verb: JobVerb,
    options: SelectionOptions,
    *,
    as_json: bool,
    reason: str = "",
    change: JobChange | None = None,
    named: tuple[str, ...] = (),
) -> None:
    """Acts on all jobs that match, or counts them.

    Args:
        client: Client of the server.
        verb: What to do.
        options: Which jobs, and whether to do it.
        as_json: Whether to print JSON.
        reason: Kept in the audit log.
        change: What `change` changes.
        named: IDs of the jobs in place of the options that select them; they need no confirmation.

    Raises:
        CommandError: After the output, if the server refused some; names each with the reason.
    """
    selection = JobSelection(jobs=named) if named else options.build_selection()
    if options.dry_run or not (options.is_confirmed or named):
        counted = client.act_on_jobs(verb, selection, change=change, dry_run=True)
        if not options.dry_run:
            fail_usage(f"{_count(counted, verb)} Repeat the command with --yes to {verb} them.")
        emit_json(counted) if as_json else say(_count(counted, verb))
        return
    acted = client.act_on_jobs(verb, selection, change=change, reason=reason)
    emit_json(acted) if as_json else say(
        f"{len(acted.done):,} of {acted.matched:,} jobs: asked to {verb}"
    )
    if acted.refused:
        raise CommandError(
            f"{len(acted.refused)} of {acted.matched} jobs were refused:\n  "
            + "\n  ".join(f"{one.job_id}: {one.detail}" for one in acted.refused)
        )
    if left := [job for job in named if job not in acted.done]:
        raise CommandError(
            f"{len(left)} of {len(named)} jobs were left alone, since they are in another state or "
            f"of other people: {', '.join(left)}"
        )


def _count(counted: JobsActed, verb: JobVerb) -> str:
    jobs = "1 job matches" if counted.matched == 1 else f"{counted.matched:,} jobs match"
    others = (
        f" {counted.not_permitted:,} more are of other people, whose jobs you may not {verb}."
        if counted.not_permitted
        else ""
    )
    return f"{jobs}.{others}"
