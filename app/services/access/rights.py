"""Checks of permissions in the project of an object."""

from dataclasses import replace

from app.domain.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from app.domain.permissions import ROLE_PERMISSIONS
from app.domain.principal import Principal
from palestra.contract.permissions import Permission


def require(principal: Principal, permission: Permission, project_id: str) -> None:
    """Refuses a caller who lacks a permission in a project that it sees.

    Raises:
        ForbiddenError: `missing_permission`.
    """
    if not principal.permits(permission, project_id):
        roles = " or ".join(
            role for role, permitted in ROLE_PERMISSIONS.items() if permission in permitted
        )
        raise ForbiddenError(
            "missing_permission",
            f"This needs the permission {permission}, which the role {roles} of the project "
            "gives. Ask a maintainer of the project.",
        )


def require_control(principal: Principal, project_id: str, submitted_by: str) -> None:
    """Refuses a caller who may not act on the submissions of a user.

    Raises:
        ForbiddenError: `not_yours` if the caller may act on its own submissions only;
            `missing_permission` if it may act on none.
    """
    if principal.permits(Permission.RUN_CONTROL_ANY, project_id):
        return
    require(principal, Permission.RUN_CONTROL_OWN, project_id)
    if submitted_by != principal.user_id:
        raise ForbiddenError(
            "not_yours",
            "Another user submitted this. Only that user and the maintainers of the project may "
            "change it: ask one of them.",
        )


def choose_project_to_submit_to(principal: Principal) -> str:
    """Returns the ID of the project that a submission goes to if it names none.

    Raises:
        ForbiddenError: `missing_permission` if the caller may submit to no project.
        InvalidError: `project_needed` if the caller may submit to several.
        ConflictError: `project_archived`.
    """
    able = [
        one
        for one in principal.memberships
        if principal.permits(Permission.RUN_SUBMIT, one.project_id)
    ]
    if not able:
        raise ForbiddenError(
            "missing_permission",
            "You may submit to no project: this needs the role member or maintainer of one. Ask a "
            "maintainer, or an administrator of the server.",
        )
    if len(able) > 1:
        raise InvalidError(
            "project_needed",
            "You may submit to several projects: "
            f"{', '.join(one.slug for one in able)}. Name one: `--project SLUG` with the command, "
            "`project=` with the client, `?project=SLUG` in a request.",
        )
    check_open(principal, able[0].project_id)
    return able[0].project_id


def check_open(principal: Principal, project_id: str) -> None:
    """Refuses a submission to an archived project.

    Raises:
        ConflictError: `project_archived`.
    """
    if any(one.archived for one in principal.memberships if one.project_id == project_id):
        raise ConflictError(
            "project_archived",
            "This project is archived: nothing can be submitted to it. A maintainer can restore "
            "it.",
        )


def require_pool_management(principal: Principal) -> None:
    """Refuses callers who may not manage pools and workers.

    Raises:
        ForbiddenError: `missing_permission`.
    """
    if not principal.permits(Permission.SERVER_POOLS):
        raise ForbiddenError(
            "missing_permission",
            "Only an administrator of the server may manage pools and workers. Ask one.",
        )


def find_only_project(principal: Principal) -> str:
    """Returns the ID of the one project that a caller's credential covers.

    Raises:
        InvalidError: `project_needed` if it covers none or several.
    """
    if len(principal.memberships) != 1:
        slugs = ", ".join(one.slug for one in principal.memberships) or "none"
        raise InvalidError(
            "project_needed",
            f"Name the project: you are a member of {slugs}.",
            pointer="/project",
        )
    return principal.memberships[0].project_id


def limit_to_project(principal: Principal, slug: str) -> Principal:
    """Returns the caller limited to one project.

    Raises:
        NotFoundError: If the caller is no member of a project of that name, or its credential does
            not cover it.
    """
    kept = tuple(one for one in principal.memberships if one.slug == slug)
    if not kept:
        raise NotFoundError("project")
    return replace(principal, memberships=kept, is_within_project=True)
