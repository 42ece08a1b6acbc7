"""The methods of `palestra.Client` that manage users and invitations."""

from collections.abc import Iterator
from typing import Final

from palestra.connection import Connection, path_part
from palestra.contract.people import InvitationsView, InvitationView, InviteRequest

_PAGE: Final = 200


class PeopleMethods:
    """Users and invitations. Requires a connection in `_connection`.

    What concerns other users requires a server administrator with the scope `admin`.
    """

    _connection: Connection

    def invite(self, request: InviteRequest) -> list[InvitationView]:
        """Makes invitations; only this answer holds their links."""
        return self._connection.post(InvitationsView, "/users:invite", request).items

    def invitations(self) -> Iterator[InvitationView]:
        """Yields all invitations, newest first."""
        return self._connection.pages(InvitationView, "/invitations", {"limit": _PAGE})

    def revoke_invitation(self, invitation_id: str) -> None:
        """Revokes an invitation that nobody has used."""
        self._connection.delete(f"/invitations/{path_part(invitation_id)}")
