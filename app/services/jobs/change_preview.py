"""Previews changes of waiting jobs: the change is made, the queue is read, and both rolled back."""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.db.engine import Database, Session
from app.db.repositories import jobs as job_rows
from app.domain.principal import Principal
from app.domain.queue.place_changes import ChangedPlaces, Moved, compare_orders, map_places
from app.domain.queue.start_order import QueuedJob
from app.domain.queue.start_simulation import Simulated
from app.services.jobs import change_sentences, job_batches, waiting_jobs
from app.services.queue import queue_facts, start_forecasts
from app.services.queue.equipped_workers import EquippedWorkers
from app.services.queue.pool_queue import PoolQueue
from app.services.queue.start_estimates import build_unknown
from app.services.views.jobs import build_job_views
from palestra.contract.change_preview import ChangePreview, PlaceChanges, PreviewedStart
from palestra.contract.job_batches import JobsActed, JobsAction
from palestra.contract.job_changes import JobChange
from palestra.contract.queue import StartEstimate
from palestra.contract.states import JobState

_MAX_NAMED: Final = 20
"""Jobs of each kind whose starts are estimated."""
_MAX_SECONDS: Final = 1.0
"""Longest time of all forecasts, apart from the first simulations of each."""

_NOT_IN_QUEUE: Final = "It does not wait in the queue."
_NO_PLACE: Final = (
    "Its start is not estimated: it has no place among the first 1,000 jobs of the pool."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Queue:
    """The first jobs of a pool's queue."""

    simulated: Simulated
    order: Sequence[QueuedJob]
    places: Mapping[str, int]
    """From 0, by job ID."""
    assigned: int
    """Number of assigned jobs, which have the places before."""

    def place(self, job_id: str) -> int | None:
        found = self.places.get(job_id)
        return None if found is None else found + self.assigned + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Changed:
    """The changed jobs, and the queues of their pools with the change."""

    states: Mapping[str, JobState]
    """By job ID, with the change."""
    queues: Mapping[str, _Queue]
    """By pool."""
    waiting: str | None
    """Why the first changed job waits, with the change."""
    acted: JobsActed


async def preview_change(
    database: Database, principal: Principal, job_id: str, wanted: JobChange
) -> ChangePreview:
    """Returns what a change of a waiting job would do; refuses it like the change itself."""

    async def apply(session: Session) -> JobsActed:
        await waiting_jobs.apply_change(session, principal, job_id, wanted)
        return _one(job_id)

    return await _preview(database, principal, apply)


async def preview_order(
    database: Database, principal: Principal, job_id: str, before: str | None
) -> ChangePreview:
    """Returns what a move of a waiting job would do; refuses it like the move itself."""

    async def apply(session: Session) -> JobsActed:
        await waiting_jobs.apply_order(session, principal, job_id, before)
        return _one(job_id)

    return await _preview(database, principal, apply)


async def preview_action(
    database: Database,
    principal: Principal,
    wanted: JobsAction,
    clock: Callable[[], float] = time.monotonic,
) -> ChangePreview:
    """Returns what an action on many jobs would do: its first request, on at most 100 jobs.

    See `job_batches.act`.
    """

    async def apply(session: Session) -> JobsActed:
        return await job_batches.act(
            session, principal, wanted.model_copy(update={"dry_run": False}), clock
        )

    return await _preview(database, principal, apply)


def _one(job_id: str) -> JobsActed:
    return JobsActed(matched=1, not_permitted=0, done=(job_id,), refused=(), next_after=None)


async def _preview(
    database: Database,
    principal: Principal,
    apply: Callable[[Session], Awaitable[JobsActed]],
) -> ChangePreview:
    async with database.trial() as session:
        changed = await _read_changed(session, await apply(session))
    async with database.read() as session:
        present = {pool: await _read_queue(session, pool) for pool in changed.queues}
    changes = _join(
        compare_orders(
            present[pool].order,
            queue.order,
            changed=changed.states,
            user_id=principal.user_id,
        )
        for pool, queue in changed.queues.items()
    )
    ids = _order_changed(changed)[:_MAX_NAMED]
    own = [*changes.own.later, *changes.own.earlier][:_MAX_NAMED]
    starts = await _estimate(changed, present, [*ids, *own])
    acted = changed.acted
    found = ChangePreview(
        jobs=len(acted.done),
        jobs_left=acted.matched - len(acted.done) - len(acted.refused),
        not_permitted=acted.not_permitted,
        refused=acted.refused,
        sentence="",
        starts=tuple(starts[job_id] for job_id in ids),
        own_starts=tuple(starts[job_id] for job_id in own),
        own=_count(changes.own),
        others=_count(changes.others),
    )
    leaves = sum(state != JobState.QUEUED for state in changed.states.values())
    sentence = change_sentences.describe(found, leaves=leaves, waiting=changed.waiting)
    return found.model_copy(update={"sentence": sentence})


async def _read_changed(session: Session, acted: JobsActed) -> _Changed:
    rows = await job_rows.list_by_ids(session, acted.done)
    queues = {pool: await _read_queue(session, pool) for pool in sorted({r.pool for r in rows})}
    waiting = None
    if len(rows) == 1 and rows[0].state == JobState.QUEUED:
        places = {
            job_id: queue_facts.QueuePlace(queue.place(job_id) or 0, number)
            for queue in queues.values()
            for job_id, number in queue.places.items()
        }
        (view,) = await build_job_views(session, rows, known_places=places)
        waiting = view.waiting
    return _Changed(
        states={row.id: row.state for row in rows},
        queues=queues,
        waiting=waiting,
        acted=acted,
    )


async def _read_queue(session: Session, pool: str) -> _Queue:
    queue = PoolQueue(session, pool, EquippedWorkers())
    state, order = await queue.read_first_jobs(queue_facts.MAX_PLACES)
    return _Queue(
        simulated=await start_forecasts.load_pool(session, pool, state),
        order=order,
        places=map_places(order),
        assigned=len(await queue_facts.list_assigned(session, pool)),
    )


def _order_changed(changed: _Changed) -> list[str]:
    """Returns the changed jobs, those that start first before the others."""
    last = queue_facts.MAX_PLACES
    places = {
        job_id: min(queue.places.get(job_id, last) for queue in changed.queues.values())
        for job_id in changed.states
    }
    return sorted(places, key=lambda job_id: (places[job_id], job_id))


async def _estimate(
    changed: _Changed, present: Mapping[str, _Queue], ids: Sequence[str]
) -> dict[str, PreviewedStart]:
    """Returns places and starts of jobs, without and with the change."""
    found = {
        job_id: PreviewedStart(
            job_id=job_id,
            place=None,
            new_place=None,
            start=build_unknown(_NOT_IN_QUEUE),
            new_start=build_unknown(
                _NO_PLACE
                if changed.states.get(job_id, JobState.QUEUED) == JobState.QUEUED
                else _NOT_IN_QUEUE
            ),
        )
        for job_id in ids
    }
    seconds = _MAX_SECONDS / (2 * max(1, len(present)))
    for pool, queue in changed.queues.items():
        former, latter = present[pool], queue
        old = await _forecast(former, ids, seconds)
        new = await _forecast(latter, ids, seconds)
        for job_id in {*old, *new}:
            one = found[job_id]
            found[job_id] = one.model_copy(
                update={
                    "place": former.place(job_id),
                    "new_place": latter.place(job_id),
                    "start": old.get(job_id, one.start),
                    "new_start": new.get(job_id, one.new_start),
                }
            )
    return found


async def _forecast(
    queue: _Queue, ids: Sequence[str], most_seconds: float
) -> dict[str, StartEstimate]:
    """Returns the estimated starts of those of the jobs that wait in a queue."""
    loaded = {job.id for heads in queue.simulated.state.heads.values() for job in heads.jobs}
    wanted = [job_id for job_id in ids if job_id in loaded]
    if not wanted:
        return {}
    made = await start_forecasts.forecast(queue.simulated, wanted, most_seconds)
    return {
        job_id: made.build_view(job_id) if job_id in queue.places else build_unknown(_NO_PLACE)
        for job_id in wanted
    }


def _join(found: Iterable[ChangedPlaces]) -> ChangedPlaces:
    pools = list(found)
    own, others = (
        Moved(
            tuple(job_id for one in kind for job_id in one.earlier),
            tuple(job_id for one in kind for job_id in one.later),
        )
        for kind in ([one.own for one in pools], [one.others for one in pools])
    )
    return ChangedPlaces(own, others)


def _count(moved: Moved) -> PlaceChanges:
    return PlaceChanges(earlier=len(moved.earlier), later=len(moved.later))
