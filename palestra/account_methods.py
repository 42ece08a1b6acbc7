"""The methods of `palestra.Client` that manage one's own account."""

from collections.abc import Iterator

from palestra.client_methods import PAGE_SIZE, ClientMethods
from palestra.connection import encode_path_part
from palestra.contract.account import AccountView, LoginSessionView, PasswordChange, PasswordChanged
from palestra.contract.overview import OverviewView
from palestra.contract.people import AccountChange, SignedOut


class AccountMethods(ClientMethods):
    """The methods for the caller's own account.

    All methods but `overview` require a person's token of all projects with the scope `admin`.
    """

    def account(self) -> AccountView:
        """Returns the caller's account."""
        return self._connection.get(AccountView, "/account")

    def overview(self) -> OverviewView:
        """Returns the running and failed runs of the token's user, the next job, and numbers.

        Every token with the scope `read` may ask for it.
        """
        return self._connection.get(OverviewView, "/account/overview")

    def change_account(self, change: AccountChange) -> AccountView:
        """Changes the members that are set in `change`, explicit `None` included; others stay."""
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
        """Yields the caller's browser logins that have not ended, newest first."""
        return self._connection.pages(LoginSessionView, "/account/sessions", {"limit": PAGE_SIZE})

    def end_login_session(self, session_id: str) -> None:
        """Ends one of the caller's browser logins."""
        self._connection.delete(f"/account/sessions/{encode_path_part(session_id)}")

    def sign_out(self) -> SignedOut:
        """Ends all browser logins and login links of the caller; tokens stay."""
        return self._connection.post(SignedOut, "/account:sign-out")
