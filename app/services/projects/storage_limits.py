"""Refuses what a project's storage limit does not permit.

A snapshot of a training that runs is stored whatever the limit: losing the training would cost
more than the space.
"""

from typing import Final

from app.db.engine import Session
from app.db.models.projects import ProjectRow
from app.db.repositories import projects as rows
from app.domain.errors import ConflictError
from palestra.contract.sizes import format_size

_CODE: Final = "storage_limit_reached"


async def check_submission(session: Session, project_id: str) -> None:
    """Refuses a submission to a project whose stored files reach its limit.

    Raises:
        ConflictError: `storage_limit_reached`.
    """
    slug, used, limit = await rows.read_storage(session, project_id)
    if limit is not None and used >= limit:
        raise ConflictError(_CODE, f"{_state(used, limit)} {_remedy(slug)}")


async def check_upload(session: Session, project_id: str, size: int) -> None:
    """Refuses a file that would exceed the limit of its project.

    The project is locked: files that are uploaded at once do not exceed the limit together.

    Raises:
        ConflictError: `storage_limit_reached`.
    """
    project = (await rows.lock_for_storage(session, [project_id]))[project_id]
    slug, used, limit = project.slug, project.storage_used, project.storage_limit
    if limit is not None and used + size > limit:
        sentence = f"{_state(used, limit)} This file has {format_size(size)}. {_remedy(slug)}"
        raise ConflictError(_CODE, sentence)


def check_move(target: ProjectRow, size: int) -> None:
    """Refuses a move whose files would exceed the limit of the target.

    Args:
        target: The other project, locked.
        size: Bytes of the experiment's files that the target does not store yet.

    Raises:
        ConflictError: `storage_limit_reached`.
    """
    used, limit = target.storage_used, target.storage_limit
    if limit is not None and used + size > limit:
        raise ConflictError(
            _CODE,
            f"{_state(used, limit, 'other project')} The experiment would add "
            f"{format_size(size)}. {_remedy(target.slug)}",
            pointer="/to",
        )


def _state(used: int, limit: int, project: str = "project") -> str:
    return f"The {project} stores {format_size(used)} of files and may store {format_size(limit)}."


def _remedy(slug: str) -> str:
    return (
        "Ask an administrator of the server to raise the limit "
        f"(`palestra projects change {slug} --storage-limit SIZE`), or use another project."
    )
