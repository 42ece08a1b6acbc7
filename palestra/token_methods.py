"""The methods of `palestra.Client` that manage API tokens and service accounts."""

from collections.abc import Iterator

from palestra.client_methods import PAGE_SIZE, ClientMethods
from palestra.connection import encode_path_part
from palestra.contract.access import TokenRequest, TokenRotation, TokenView
from palestra.contract.service_accounts import ServiceAccountRequest, ServiceAccountView


class TokenMethods(ClientMethods):
    """Tokens and service accounts.

    All methods require the scope `admin`.
    """

    def tokens(self) -> Iterator[TokenView]:
        """Yields the caller's tokens, and the tokens of the projects that the caller maintains."""
        return self._connection.pages(TokenView, "/tokens", {"limit": PAGE_SIZE})

    def create_token(self, request: TokenRequest) -> TokenView:
        """Creates a token; only this answer holds its secret."""
        return self._connection.post(TokenView, "/tokens", request)

    def rotate_token(self, token_id: str, rotation: TokenRotation | None = None) -> TokenView:
        """Gives a token a new secret; the previous one stays valid for the overlap."""
        path = f"/tokens/{encode_path_part(token_id)}:rotate"
        return self._connection.post(TokenView, path, rotation or TokenRotation())

    def revoke_token(self, token_id: str) -> None:
        """Revokes a token at once, and all tokens that were created with it."""
        self._connection.delete(f"/tokens/{encode_path_part(token_id)}")

    def service_accounts(self, project: str) -> Iterator[ServiceAccountView]:
        """Yields the service accounts of a project by name. Requires a maintainer."""
        return self._connection.pages(ServiceAccountView, _accounts(project))

    def create_service_account(
        self, project: str, request: ServiceAccountRequest
    ) -> ServiceAccountView:
        """Creates a user for programs, which belongs to the project and cannot log in."""
        return self._connection.post(ServiceAccountView, _accounts(project), request)

    def delete_service_account(self, project: str, name: str) -> None:
        """Disables a service account for ever and revokes its tokens."""
        self._connection.delete(f"{_accounts(project)}/{encode_path_part(name)}")

    def create_service_token(self, project: str, name: str, request: TokenRequest) -> TokenView:
        """Creates a token of a service account; only this answer holds its secret."""
        path = f"{_accounts(project)}/{encode_path_part(name)}/tokens"
        return self._connection.post(TokenView, path, request)


def _accounts(project: str) -> str:
    return f"/projects/{encode_path_part(project)}/service-accounts"
