"""Who may use which priority class, and for which jobs."""

from typing import Final

from app.domain.errors import ForbiddenError, InvalidError
from app.domain.principal import Principal
from palestra.contract.job_options import Limits
from palestra.contract.names import PriorityClass
from palestra.contract.permissions import Permission

INTERACTIVE_SECONDS: Final = 1_800
"""Longest wall time of an interactive job."""


def check(
    principal: Principal, project_id: str, chosen: PriorityClass, limits: Limits, pointer: str
) -> None:
    """Refuses a priority class that the caller or the job must not have.

    Args:
        principal: The caller.
        project_id: Project of the job.
        chosen: The class.
        limits: Limits of the job, with the wall time of its pool.
        pointer: JSON pointer of the options in the request.

    Raises:
        ForbiddenError: `class_not_permitted` for `urgent` without the rights of a maintainer.
        InvalidError: `interactive_too_long` without a wall time of at most 30 minutes.
    """
    if chosen is PriorityClass.URGENT and not principal.permits(
        Permission.RUN_CONTROL_ANY, project_id
    ):
        raise ForbiddenError(
            "class_not_permitted",
            "Only maintainers of the project submit urgent jobs. Choose normal, or ask one of them "
            "to change the class of the job.",
        )
    check_wall_time(chosen, limits, pointer)


def check_wall_time(chosen: PriorityClass, limits: Limits, pointer: str) -> None:
    """Refuses a wall time that is too long for a priority class.

    Raises:
        InvalidError: `interactive_too_long` without a wall time of at most 30 minutes.
    """
    wall = limits.wall_seconds
    if chosen is PriorityClass.INTERACTIVE and (wall is None or wall > INTERACTIVE_SECONDS):
        asked = "has none" if wall is None else f"has {wall} s"
        raise InvalidError(
            "interactive_too_long",
            f"An interactive job needs a wall time of at most {INTERACTIVE_SECONDS} s; this one "
            f"{asked}. Set limits.wall_seconds, or choose the class normal.",
            pointer=f"{pointer}/limits/wall_seconds",
        )
