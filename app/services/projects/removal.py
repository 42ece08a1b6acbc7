"""Removes the content of deleted projects once they can no longer be restored.

Every step is one short transaction. The files of blobs are deleted after the commit that removed
their rows; files that a killed process left are found by the compactor.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from app.db.engine import Database, Session
from app.db.models.projects import ProjectRow
from app.db.repositories import deleted_projects as rows
from app.db.repositories import project_content as content
from app.db.repositories import tokens as token_rows
from app.db.repositories import users as user_rows
from app.db.repositories.project_content import Remove
from app.services.artifacts.blob_store import BlobStore
from app.services.attempts import endings
from app.services.audit import audit_log
from app.services.projects import deletion
from palestra.contract.states import Cause

ACTOR: Final = "daemon:remover"
STEP_SECONDS: Final = 0.02
"""Time after which a step takes no further rows, so that other writers wait no longer."""
_ROWS: Final = 200
"""Rows of one statement."""
_BLOBS: Final = 50
_ATTEMPTS: Final = 20


@dataclass(slots=True)
class RemovalStep:
    """The result of one transaction of a removal."""

    rows: int = 0
    blobs: list[str] = field(default_factory=list)
    """IDs of blobs whose files are to be deleted."""
    is_finished: bool = False
    """Whether nothing of the project is left, or another process removes it."""


async def end_jobs(database: Database, project_id: str) -> None:
    """Cancels the jobs of a deleted project that the deletion itself left uncancelled."""
    more = True
    while more:
        async with database.write() as session:
            is_deleted = await rows.is_deleted(session, project_id)
            more = is_deleted and await deletion.cancel_jobs(session, project_id, ACTOR) > 0


async def end_attempts(database: Database, project_id: str) -> None:
    """Ends the live attempts of a project that is being removed; later requests are refused."""
    async with database.read() as session:
        live = await rows.list_live_attempts(session, project_id, _ATTEMPTS)
    while live:
        for attempt_id in live:
            async with database.write() as session:
                await endings.end_as_lost(session, attempt_id, Cause.USER, ACTOR)
        async with database.read() as session:
            live = await rows.list_live_attempts(session, project_id, _ATTEMPTS)


async def step(database: Database, store: BlobStore, project_id: str) -> RemovalStep:
    """Removes a batch of a project's rows in one transaction, then the files of removed blobs."""
    done = RemovalStep()
    until = time.monotonic() + STEP_SECONDS
    async with database.write() as session:
        project = await rows.lock_removal(session, project_id)
        if project is None:
            done.is_finished = True
            return done
        await _remove_some(session, project, done)
        while not done.is_finished and time.monotonic() < until:
            await _remove_some(session, project, done)
    await asyncio.to_thread(store.delete, done.blobs)
    return done


async def _remove_some(session: Session, project: ProjectRow, done: RemovalStep) -> None:
    run_id = await content.find_next_run(session, project.id)
    if run_id is not None:
        done.rows += await _remove_from_first_table(session, content.OF_RUN, run_id)
        return
    attempt_id = await content.find_next_attempt(session, project.id)
    if attempt_id is not None:
        done.rows += await _remove_from_first_table(session, content.OF_ATTEMPT, attempt_id)
        return
    removed = await _remove_from_first_table(session, content.OF_PROJECT, project.id)
    if removed:
        done.rows += removed
        return
    blobs = await content.remove_blobs(session, project.id, _BLOBS)
    if blobs:
        done.rows += len(blobs)
        done.blobs += blobs
        return
    await _finish(session, project)
    done.is_finished = True


async def _remove_from_first_table(session: Session, removals: Sequence[Remove], owner: str) -> int:
    """Removes rows of the first table that still has rows of the project; returns their number."""
    for remove in removals:
        removed = await remove(session, owner, _ROWS)
        if removed:
            return removed
    return 0


async def _finish(session: Session, project: ProjectRow) -> None:
    for user_id in await content.list_service_accounts(session, project.id):
        if any((await user_rows.count_owned(session, user_id)).values()):
            await token_rows.retire(session, user_id)
        else:
            await user_rows.delete_user(session, user_id)
    await content.remove_project(session, project.id)
    audit_log.record(
        session,
        "project.remove",
        project.id,
        project_id=project.id,
        actor=ACTOR,
        data={"slug": project.slug, "name": project.name},
    )
