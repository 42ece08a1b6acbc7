"""The credentials that a worker passes to a supervisor through a pipe."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """The server's address and the attempt's token."""

    server: str
    token: str = field(repr=False)
    renew_seconds: float
