"""Joining by an invitation, and logging in by password: how a program gets a first token.

Only a login like that of a browser makes it. That login ends as soon as the token is made.
"""

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import urlsplit

from palestra.addresses import AddressError, parse_server_address
from palestra.connection import Connection
from palestra.contract.access import (
    LinkPreview,
    LoginRequest,
    SessionView,
    SetupRequest,
    TokenRequest,
    TokenView,
)
from palestra.contract.names import Scope
from palestra.errors import PalestraError, TokenNotMadeError

_FRAGMENT: Final = "#code="
_PAGE: Final = "/login"


@dataclass(frozen=True, slots=True)
class InvitationLink:
    """An invitation's link: address of the server, and the code."""

    server: str
    code: str

    @classmethod
    def read(cls, text: str) -> Self:
        """Returns the parts of a link.

        Raises:
            ValueError: If it is no such link; the message does not repeat the code.
        """
        page, _, code = text.strip().partition(_FRAGMENT)
        try:
            server = parse_server_address(page.removesuffix(_PAGE))
        except AddressError:
            server = ""
        if not server or not page.endswith(_PAGE) or not code:
            raise ValueError(
                "this is no link of an invitation: copy all of it, from https:// to the end of "
                "what follows #code=, and put it in quotes"
            )
        return cls(server, code)


def preview_link(server: str, request: SetupRequest) -> LinkPreview:
    """Returns the purpose of a link, and the faults of name and password; the link stays valid.

    Raises:
        PalestraError: If the link is unknown, used, expired or revoked.
    """
    with _connection(server) as connection:
        asked = request.model_copy(update={"check_only": True})
        return connection.post(LinkPreview, "/session:redeem", asked)


def join(server: str, request: SetupRequest, token: TokenRequest) -> TokenView:
    """Makes the user of an invitation; returns a token of the user.

    Raises:
        TokenNotMadeError: If the invitation was used and the token was not made.
        PalestraError: If the invitation was refused: nothing has changed.
    """
    return _token_of(
        server,
        lambda connection: connection.post(SessionView, "/session:redeem", request),
        token,
    )


def log_in(server: str, request: LoginRequest, token: TokenRequest) -> TokenView:
    """Logs in by password; returns a new token of the user.

    Raises:
        TokenNotMadeError: If the token was not made.
        PalestraError: If the login was refused.
    """
    return _token_of(
        server, lambda connection: connection.post(SessionView, "/session", request), token
    )


def build_token_request(name: str | None = None, days: int | None = 90) -> TokenRequest:
    """Returns the request of a personal token, which may do what its user may.

    Args:
        name: Name of the token; that of this machine by default.
        days: Lifetime of the token.
    """
    machine = "".join(one for one in platform.node() if one.isprintable()).strip()[:64]
    return TokenRequest(
        name=name or machine or "command line",
        scopes=(Scope.READ, Scope.SUBMIT, Scope.ADMIN),
        expires_in_days=days,
    )


def _token_of(
    server: str, open_login: Callable[[Connection], SessionView], token: TokenRequest
) -> TokenView:
    with _connection(server) as connection:
        session = open_login(connection)
        parts = urlsplit(parse_server_address(server))
        connection.keep_login(
            {
                "Origin": f"{parts.scheme}://{parts.netloc}",
                "X-CSRF-Token": session.csrf_token or "",
            }
        )
        try:
            return connection.post(TokenView, "/tokens", token)
        except PalestraError as error:
            raise TokenNotMadeError(session.user, str(error)) from error
        finally:
            # A login that stays open ends by itself; the token is what the caller waits for.
            with suppress(PalestraError):
                connection.delete("/session")


@contextmanager
def _connection(server: str) -> Iterator[Connection]:
    connection = Connection(server, None)
    try:
        yield connection
    finally:
        connection.close()
