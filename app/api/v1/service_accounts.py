"""Service accounts of a project, and their tokens."""

from typing import Annotated

from fastapi import Depends, Path

from app.api.auth import CredentialManager, limit_to_project_of_path
from app.api.deps import ReadSession, SettingsDep, WriteSession
from app.api.resource_router import ResourceRouter
from app.api.strict_body import TINY, JsonBody
from app.services.access import service_accounts
from palestra.contract.access import TokenRequest, TokenView
from palestra.contract.service_accounts import ServiceAccountRequest, ServiceAccountView
from palestra.contract.views import Page

router = ResourceRouter(
    prefix="/projects/{project}/service-accounts",
    tags=["projects"],
    dependencies=[Depends(limit_to_project_of_path)],
)

Name = Annotated[str, Path(max_length=64, description="Name of the service account.")]


@router.get("")
async def list_service_accounts(
    principal: CredentialManager, session: ReadSession
) -> Page[ServiceAccountView]:
    """Lists the project's service accounts by name."""
    return await service_accounts.list_accounts(session, principal)


@router.post("", status_code=201, responses={409: {}})
async def create_service_account(
    principal: CredentialManager,
    body: Annotated[ServiceAccountRequest, Depends(JsonBody(ServiceAccountRequest, limit=TINY))],
    session: WriteSession,
) -> ServiceAccountView:
    """Creates a user for programs, which belongs to the project and cannot log in."""
    return await service_accounts.create(session, principal, body)


@router.delete("/{name}", status_code=204)
async def delete_service_account(
    name: Name, principal: CredentialManager, session: WriteSession
) -> None:
    """Disables a service account for ever and revokes its tokens."""
    await service_accounts.delete(session, principal, name)


@router.post("/{name}/tokens", status_code=201)
async def create_service_token(
    name: Name,
    principal: CredentialManager,
    body: Annotated[TokenRequest, Depends(JsonBody(TokenRequest, limit=TINY))],
    session: WriteSession,
    settings: SettingsDep,
) -> TokenView:
    """Creates a token of a service account; only this answer holds its secret."""
    return await service_accounts.create_token(
        session, principal, name, body, may_never_end=settings.tokens_without_end
    )
