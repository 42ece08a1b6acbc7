"""The methods of `palestra.Client` that manage users and invitations."""

from collections.abc import Iterator

from palestra.client_methods import PAGE_SIZE, ClientMethods
from palestra.connection import encode_path_part
from palestra.contract.people import (
    DisableRequest,
    InvitationsView,
    InvitationView,
    InviteRequest,
    LoginLinkView,
    SignedOut,
    UserChange,
    UserDeleted,
    UserDetail,
    UserDisabled,
    UserState,
    UserView,
)


class PeopleMethods(ClientMethods):
    """Users and invitations.

    Methods for other users require a server administrator with the scope `admin`.
    """

    def invite(self, request: InviteRequest) -> list[InvitationView]:
        """Makes invitations; only this answer holds their links."""
        return self._connection.post(InvitationsView, "/users:invite", request).items

    def invitations(self) -> Iterator[InvitationView]:
        """Yields all invitations, newest first."""
        return self._connection.pages(InvitationView, "/invitations", {"limit": PAGE_SIZE})

    def revoke_invitation(self, invitation_id: str) -> None:
        """Revokes an invitation that nobody has used."""
        self._connection.delete(f"/invitations/{encode_path_part(invitation_id)}")

    def users(
        self, *, text: str | None = None, state: UserState | None = None
    ) -> Iterator[UserView]:
        """Yields people by login name.

        Args:
            text: Part of a name or e-mail address.
            state: Active or disabled people only.
        """
        wanted = {"text": text, "state": state, "limit": PAGE_SIZE}
        return self._connection.pages(UserView, "/users", wanted)

    def user(self, user: str) -> UserDetail:
        """Returns a person, by login name or ID, with the numbers of the person's objects."""
        return self._connection.get(UserDetail, _path(user))

    def change_user(self, user: str, change: UserChange) -> UserDetail:
        """Changes the members that are set in `change`, explicit `None` included; others stay."""
        return self._connection.send(UserDetail, "PATCH", _path(user), body=change)[0]

    def disable_user(self, user: str, request: DisableRequest | None = None) -> UserDisabled:
        """Ends a person's logins, tokens and streams; by default the person's jobs go on."""
        body = request or DisableRequest()
        return self._connection.post(UserDisabled, f"{_path(user)}:disable", body)

    def enable_user(self, user: str) -> UserDetail:
        """Lets a disabled person log in again."""
        return self._connection.post(UserDetail, f"{_path(user)}:enable")

    def reset_password(self, user: str) -> LoginLinkView:
        """Returns a one-time link with which a person sets a new password."""
        return self._connection.post(LoginLinkView, f"{_path(user)}:reset-password")

    def sign_out_user(self, user: str) -> SignedOut:
        """Ends all browser logins of a person; tokens stay."""
        return self._connection.post(SignedOut, f"{_path(user)}:sign-out")

    def delete_user(self, user: str, *, transfer_to: str | None = None) -> UserDeleted:
        """Deletes a person; what the person owns goes to the user `transfer_to`."""
        parameters = {"transfer_to": transfer_to}
        return self._connection.send(UserDeleted, "DELETE", _path(user), parameters=parameters)[0]


def _path(user: str) -> str:
    return f"/users/{encode_path_part(user)}"
