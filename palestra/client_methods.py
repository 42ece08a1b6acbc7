"""What the groups of methods of `palestra.Client` share."""

from typing import Final

from palestra.connection import Connection

PAGE_SIZE: Final = 200
"""Items of a list that one request asks for."""


class ClientMethods:
    """A group of methods of `palestra.Client`, which sets the attributes."""

    _connection: Connection
    _within: str
    """Path of the project that the client is bound to; empty for all projects of the token."""
