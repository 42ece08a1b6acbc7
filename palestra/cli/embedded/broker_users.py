"""The server's user of the broker; the default user is disabled.

The server makes a user for each worker (`app.services.workers.broker_users`). The commands are
those that the server, Celery, kombu 5.7 and redis-py send; a test runs them under these rules and
checks that none is denied.
"""

from hashlib import sha256
from typing import Final

QUEUES: Final = "palestra.pool."
"""Prefix of the queues' keys (`palestra.contract.names.worker_queue`)."""

_BINDINGS: Final = (f"~_kombu.binding.{QUEUES}*", f"~_kombu.binding_permanent.{QUEUES}*")

SERVER_RULES: Final = " ".join(
    (
        f"~{QUEUES}*",
        *_BINDINGS,
        "&palestra.*",
        *("+ping", "+hello", "+client|setinfo"),
        # Dispatch messages. A key of a queue that does not hold a list is deleted.
        *("+lpush", "+llen", "+sadd", "+multi", "+exec", "+type", "+del"),
        # The live fan-out between server processes.
        *("+publish", "+subscribe"),
        # The workers' users.
        *("+acl|list", "+acl|setuser", "+acl|deluser"),
    )
)


def build_user_lines(password: str) -> list[str]:
    """Returns the lines of Valkey's configuration that make the server's user.

    They hold a hash of the password.
    """
    digest = sha256(password.encode()).hexdigest()
    return ["user default off resetpass", f"user server on #{digest} {SERVER_RULES}"]
