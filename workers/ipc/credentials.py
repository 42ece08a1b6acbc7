"""What a worker hands to a supervisor through a pipe, and nothing else ever sees."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Where the server is, and the attempt's token."""

    server: str
    token: str = field(repr=False)
    renew_seconds: float
