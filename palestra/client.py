"""The typed client of the HTTP API: submit, watch, query, control."""

from typing import Self

from palestra import sign_in
from palestra.account_methods import AccountMethods
from palestra.audit_methods import AuditMethods
from palestra.connection import Connection
from palestra.contract.access import LoginRequest, SessionView, SetupRequest, TokenView
from palestra.event_feed import EventFeed
from palestra.experiment_methods import ExperimentMethods
from palestra.file_methods import FileMethods
from palestra.job_methods import JobMethods
from palestra.people_methods import PeopleMethods
from palestra.pool_methods import PoolMethods
from palestra.project_methods import ProjectMethods
from palestra.record_methods import RecordMethods
from palestra.token_methods import TokenMethods
from palestra.usage_methods import UsageMethods
from palestra.view_methods import ViewMethods


class Client(
    ExperimentMethods,
    FileMethods,
    JobMethods,
    PoolMethods,
    AuditMethods,
    AccountMethods,
    PeopleMethods,
    ProjectMethods,
    RecordMethods,
    TokenMethods,
    UsageMethods,
    ViewMethods,
):
    """A client of one server with one token. Thread-safe; usable as a context manager.

    Every method raises a `palestra.errors.PalestraError`: the subclass of `ApiError` for the
    server's refusal, or `UnreachableError`.

    Args:
        server: Base URL, for example `http://127.0.0.1:8080`.
        token: API token (`plr_...`).
        project: Slug of the project to submit to, and of which to list; `None` lists those of all
            projects that the token may read, and submits to the only one.
        timeout: Seconds for each of connecting, sending and receiving.
    """

    def __init__(
        self, server: str, token: str, *, project: str | None = None, timeout: float = 30.0
    ) -> None:
        self._connection = Connection(server, token, timeout=timeout)
        self._feed = EventFeed(self._connection)
        self._project = project

    @staticmethod
    def join(
        link: str, *, password: str, user: str | None = None, token_name: str | None = None
    ) -> TokenView:
        """Becomes a user by an invitation; returns a first token, whose secret is shown once.

        Args:
            link: The link of the invitation.
            password: Password of the new user.
            user: Login name; needed where the invitation has none.
            token_name: Where the token is used; the name of this machine by default.

        Raises:
            ValueError: If `link` is not such a link, or a name or the password is malformed.
            palestra.errors.TokenNotMadeError: If the invitation was used and there is no token:
                `log_in` makes one.
        """
        place = sign_in.InvitationLink.read(link)
        request = SetupRequest(code=place.code, user=user, password=password)
        return sign_in.join(place.server, request, sign_in.build_token_request(token_name))

    @staticmethod
    def log_in(
        server: str, *, user: str, password: str, token_name: str | None = None
    ) -> TokenView:
        """Logs a person in by password; returns a new token, whose secret is shown once.

        Args:
            server: Base URL.
            user: Login name.
            password: Password of the user.
            token_name: Where the token is used; the name of this machine by default.

        Raises:
            palestra.errors.TokenNotMadeError: If the password is right and there is no token.
        """
        request = LoginRequest(user=user, password=password)
        return sign_in.log_in(server, request, sign_in.build_token_request(token_name))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    def session(self) -> SessionView:
        """Returns the user and the permissions of the token."""
        return self._connection.get(SessionView, "/session")
