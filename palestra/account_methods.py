"""The methods of `palestra.Client` that manage one's own account."""

from collections.abc import Iterator

from palestra.client_methods import PAGE_SIZE, ClientMethods
from palestra.connection import encode_path_part
from palestra.contract.account import AccountView, LoginSessionView, PasswordChange, PasswordChanged
from palestra.contract.people import AccountChange, SignedOut


class AccountMethods(ClientMethods):
    """One's own account.

    All of them require a person's token of all projects with the scope `admin`.
    """

    def account(self) -> AccountView:
        """Returns one's own account."""
        return self._connection.get(AccountView, "/account")

    def change_account(self, change: AccountChange) -> AccountView:
        """Changes what is set in `change`, with explicit `None` too; the rest stays."""
        return self._connection.send(AccountView, "PATCH", "/account", body=change)[0]

    def set_password(self, password: str, current_password: str | None = None) -> PasswordChanged:
        """Sets a new password; all browser logins end, tokens stay.

        The first password is set in the browser, where a one-time link has logged in.

        Raises:
            palestra.errors.ApiError: If the current password is wrong, or the new one too easy to
                guess.
        """
        change = PasswordChange(password=password, current_password=current_password)
        return self._connection.send(PasswordChanged, "PUT", "/account/password", body=change)[0]

    def login_sessions(self) -> Iterator[LoginSessionView]:
        """Yields one's own browser logins that have not ended, newest first."""
        return self._connection.pages(LoginSessionView, "/account/sessions", {"limit": PAGE_SIZE})

    def end_login_session(self, session_id: str) -> None:
        """Ends one of one's own browser logins."""
        self._connection.delete(f"/account/sessions/{encode_path_part(session_id)}")

    def sign_out(self) -> SignedOut:
        """Ends all of one's own browser logins and login links; tokens stay."""
        return self._connection.post(SignedOut, "/account:sign-out")
