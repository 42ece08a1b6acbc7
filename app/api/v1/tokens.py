"""API tokens."""

from typing import Annotated

from fastapi import Depends

from app.api.auth import TokenManager
from app.api.deps import ReadSession, SettingsDep, WriteSession
from app.api.paging import declare_page_request
from app.api.resource_router import ResourceRouter
from app.api.strict_body import TINY, JsonBody
from app.domain.paging import PageRequest
from app.services.access import tokens
from palestra.contract.access import TokenRequest, TokenRotation, TokenView
from palestra.contract.views import Page

router = ResourceRouter(prefix="/tokens", tags=["access"])

TokenPage = Annotated[
    PageRequest, Depends(declare_page_request("-created_at", ("created_at", "name")))
]


@router.post("", status_code=201, responses={404: {}})
async def create_token(
    principal: TokenManager,
    body: Annotated[TokenRequest, Depends(JsonBody(TokenRequest, limit=TINY))],
    session: WriteSession,
    settings: SettingsDep,
) -> TokenView:
    """Creates a token; only this answer holds its secret.

    A token that is created with a token is the child of that token.
    """
    return await tokens.create_token(
        session, principal, body, may_never_end=settings.tokens_without_end
    )


@router.get("")
async def list_tokens(
    principal: TokenManager, session: ReadSession, page: TokenPage
) -> Page[TokenView]:
    """Lists the caller's own tokens, and all tokens of the projects that the caller maintains."""
    return await tokens.list_tokens(session, principal, page)


@router.post("/{token_id}:rotate", responses={409: {}})
async def rotate_token(
    token_id: str,
    principal: TokenManager,
    body: Annotated[TokenRotation, Depends(JsonBody(TokenRotation, limit=TINY, required=False))],
    session: WriteSession,
) -> TokenView:
    """Gives a token a new secret, which only this answer holds.

    The previous secret stays valid for the chosen overlap.
    """
    return await tokens.rotate_token(session, principal, token_id, body)


@router.delete("/{token_id}", status_code=204)
async def revoke_token(token_id: str, principal: TokenManager, session: WriteSession) -> None:
    """Revokes a token at once, and all tokens that were created with it but those of workers."""
    await tokens.revoke_token(session, principal, token_id)
