"""Invitations of new users."""

from typing import Annotated

from fastapi import Depends

from app.api.auth import UserManager
from app.api.deps import ReadSession, ServerUrl, WriteSession
from app.api.paging import declare_page_request
from app.api.resource_router import ResourceRouter
from app.api.strict_body import JsonBody
from app.domain.paging import PageRequest
from app.services.access import invitations
from palestra.contract.people import InvitationsView, InvitationView, InviteRequest
from palestra.contract.views import Page

router = ResourceRouter(tags=["people"])

InvitationPage = Annotated[
    PageRequest, Depends(declare_page_request("-created_at", ("created_at", "expires_at")))
]


@router.post("/users:invite", status_code=201, responses={409: {}})
async def invite_users(
    principal: UserManager,
    body: Annotated[InviteRequest, Depends(JsonBody(InviteRequest))],
    session: WriteSession,
    server_url: ServerUrl,
) -> InvitationsView:
    """Creates invitations; only this answer holds their links."""
    return await invitations.invite(session, principal, body, server_url)


@router.get("/invitations")
async def list_invitations(
    principal: UserManager, session: ReadSession, page: InvitationPage
) -> Page[InvitationView]:
    """Lists invitations, also those that were used, have expired or were revoked."""
    return await invitations.list_invitations(session, principal, page)


@router.delete("/invitations/{invitation_id}", status_code=204, responses={409: {}})
async def revoke_invitation(
    invitation_id: str, principal: UserManager, session: WriteSession
) -> None:
    """Revokes an invitation that nobody has used."""
    await invitations.revoke(session, principal, invitation_id)
