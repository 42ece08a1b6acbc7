"""Projects: list, create, read, change, archive, restore, delete; their members and thresholds.

The paths name the project as `{slug}`: an administrator of the server manages projects of which it
is no member, so these requests are not limited to a project of the caller.
"""

from typing import Annotated

from fastapi import Depends, Path, Query

from app.api.auth import MemberManager, ProjectManager, Reader, ServerProjectManager
from app.api.deps import ReadSession, SettingsDep, WriteSession
from app.api.paging import declare_page_request
from app.api.resource_router import ResourceRouter
from app.api.strict_body import JsonBody
from app.domain.paging import PageRequest
from app.services.projects import deletion, members, projects, thresholds
from palestra.contract.names import SLUG_PATTERN
from palestra.contract.projects import (
    DeletedProjectView,
    MembershipRequest,
    MemberView,
    ProjectChange,
    ProjectRequest,
    ProjectView,
)
from palestra.contract.thresholds import ThresholdRequest, ThresholdView
from palestra.contract.views import Page

router = ResourceRouter(prefix="/projects", tags=["projects"])

ProjectPage = Annotated[PageRequest, Depends(declare_page_request("name", ("name", "created_at")))]
DeletedPage = Annotated[
    PageRequest, Depends(declare_page_request("-deleted_at", ("deleted_at", "name")))
]
ProjectSlug = Annotated[str, Path(max_length=64, description="Slug of the project.")]
ThresholdName = Annotated[str, Path(max_length=64, description="Name of the threshold.")]
NewThresholdName = Annotated[
    str,
    Path(max_length=64, pattern=SLUG_PATTERN, description="Name of the threshold: `reached.NAME`."),
]
UserName = Annotated[str, Path(max_length=64, description="Login name of the user.")]


@router.get("")
async def list_projects(
    principal: Reader, session: ReadSession, page: ProjectPage
) -> Page[ProjectView]:
    """Lists the caller's projects; all of them for an administrator of the server."""
    return await projects.list_projects(session, principal, page)


@router.post("", status_code=201, responses={409: {}})
async def create_project(
    principal: ServerProjectManager,
    body: Annotated[ProjectRequest, Depends(JsonBody(ProjectRequest))],
    session: WriteSession,
) -> ProjectView:
    """Creates a project, of which the caller becomes a maintainer."""
    return await projects.create(session, principal, body)


@router.get(":deleted")
async def list_deleted_projects(
    principal: ServerProjectManager, session: ReadSession, page: DeletedPage
) -> Page[DeletedProjectView]:
    """Lists deleted projects whose content is not removed yet."""
    return await deletion.list_deleted(session, principal, page)


@router.get("/{slug}")
async def get_project(slug: ProjectSlug, principal: Reader, session: ReadSession) -> ProjectView:
    """Returns a project with the numbers of its objects, and the caller's permissions in it."""
    return await projects.get(session, principal, slug)


@router.patch("/{slug}", responses={409: {}})
async def change_project(
    slug: ProjectSlug,
    principal: ProjectManager,
    body: Annotated[ProjectChange, Depends(JsonBody(ProjectChange))],
    session: WriteSession,
) -> ProjectView:
    """Renames or describes a project, or sets its storage limit."""
    return await projects.change(session, principal, slug, body)


@router.post("/{slug}:archive")
async def archive_project(
    slug: ProjectSlug, principal: ProjectManager, session: WriteSession
) -> ProjectView:
    """Archives a project: nothing can be submitted to it; its running jobs continue."""
    return await projects.archive(session, principal, slug)


@router.post("/{slug}:restore")
async def restore_project(
    slug: ProjectSlug, principal: ProjectManager, session: WriteSession
) -> ProjectView:
    """Opens an archived project again."""
    return await projects.archive(session, principal, slug, archived=False)


@router.delete("/{slug}", responses={409: {}})
async def delete_project(
    slug: ProjectSlug,
    principal: ProjectManager,
    session: WriteSession,
    settings: SettingsDep,
    confirm: Annotated[str, Query(max_length=64, description="The project's slug again.")],
) -> DeletedProjectView:
    """Deletes an archived project: hides it and cancels its jobs.

    An administrator of the server can restore it until `restorable_until`; its content is removed
    after that.
    """
    return await deletion.delete(session, principal, slug, confirm, settings)


@router.post("/{slug}:undelete", responses={409: {}})
async def undelete_project(
    slug: ProjectSlug, principal: ServerProjectManager, session: WriteSession
) -> ProjectView:
    """Restores a deleted project; it is archived, and its jobs stay cancelled."""
    return await deletion.undelete(session, principal, slug)


@router.get("/{slug}/members")
async def list_members(
    slug: ProjectSlug, principal: Reader, session: ReadSession
) -> Page[MemberView]:
    """Lists all members of a project by login name."""
    return await members.list_members(session, principal, slug)


@router.put("/{slug}/members/{user}", responses={409: {}})
async def set_member(
    slug: ProjectSlug,
    user: UserName,
    principal: MemberManager,
    body: Annotated[MembershipRequest, Depends(JsonBody(MembershipRequest))],
    session: WriteSession,
) -> MemberView:
    """Adds a user to a project, or gives a member another role."""
    return await members.set_role(session, principal, slug, user, body.role)


@router.delete("/{slug}/members/{user}", status_code=204, responses={409: {}})
async def remove_member(
    slug: ProjectSlug, user: UserName, principal: MemberManager, session: WriteSession
) -> None:
    """Removes a member; the member's experiments stay and their jobs continue."""
    await members.remove(session, principal, slug, user)


@router.get("/{slug}/thresholds")
async def list_thresholds(
    slug: ProjectSlug, principal: Reader, session: ReadSession
) -> Page[ThresholdView]:
    """Lists all thresholds of a project by name, with the numbers of runs that reached them."""
    return await thresholds.list_thresholds(session, principal, slug)


@router.put("/{slug}/thresholds/{threshold}", responses={409: {}})
async def set_threshold(
    slug: ProjectSlug,
    threshold: NewThresholdName,
    principal: ProjectManager,
    body: Annotated[ThresholdRequest, Depends(JsonBody(ThresholdRequest))],
    session: WriteSession,
) -> ThresholdView:
    """Declares a threshold of a series, or replaces the one of that name.

    From then on each run's first crossing is kept, of earlier runs too: lists of runs and
    experiments filter, sort and have columns by `reached.NAME` and `reached.NAME.seconds`.
    """
    return await thresholds.declare(session, principal, slug, threshold, body)


@router.delete("/{slug}/thresholds/{threshold}", status_code=204)
async def remove_threshold(
    slug: ProjectSlug, threshold: ThresholdName, principal: ProjectManager, session: WriteSession
) -> None:
    """Removes a threshold and what was kept of its crossings; the curves stay."""
    await thresholds.remove(session, principal, slug, threshold)
