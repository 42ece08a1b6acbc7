"""Broker users: one for the server and one for workers; the default user is disabled.

The lists of commands are those that Celery, kombu 5.7 and redis-py send; a test runs them under
these rules and checks that none is denied.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Final

QUEUES: Final = "palestra.pool."
"""Prefix of the queues' keys (`palestra.contract.names.worker_queue`)."""

_CONNECT: Final = ("+ping", "+hello", "+client|setinfo")
_BINDINGS: Final = (f"~_kombu.binding.{QUEUES}*", f"~_kombu.binding_permanent.{QUEUES}*")

RULES: Final[Mapping[str, str]] = {
    # Sends dispatch messages, and carries the live fan-out between server processes.
    "server": " ".join(
        (
            f"~{QUEUES}*",
            *_BINDINGS,
            "&palestra.*",
            *_CONNECT,
            *("+lpush", "+llen", "+sadd", "+multi", "+exec"),
            *("+publish", "+subscribe"),
        )
    ),
    # Takes dispatch messages from the queues; it can neither write to the queues nor run a
    # script.
    "worker": " ".join(
        (f"~{QUEUES}*", *_BINDINGS, *_CONNECT, "+brpop", "+llen", "+sadd", "+multi", "+exec")
    ),
}


def build_user_lines(passwords: Mapping[str, str]) -> list[str]:
    """Returns the lines of Valkey's configuration that make the users.

    They hold hashes of the passwords.

    Args:
        passwords: Password of each user of `RULES`.
    """
    users = [
        f"user {name} on #{sha256(passwords[name].encode()).hexdigest()} {rules}"
        for name, rules in RULES.items()
    ]
    return ["user default off resetpass", *users]
