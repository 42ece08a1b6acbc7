"""Users of the broker: each worker has its own, which reaches the worker's own queue alone.

The server makes the users, and keeps only hashes of their passwords. A broker that restarted has
lost them, so that every server process makes those that are missing, periodically and before the
dispatcher sends. A broker that does not let the server make users keeps one for all workers: that
of the setting `worker_broker_url`.
"""

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Literal
from urllib.parse import urlsplit, urlunsplit

import structlog
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError
from redis.retry import Retry

from app.bus import Bus
from app.db.engine import BROKER_USERS, Database
from app.db.repositories import workers as rows
from app.db.repositories.workers import WorkerQueue
from app.settings import Settings

_log = structlog.get_logger("palestra.broker")

CHECK_SECONDS: Final = 5.0
"""Period in which the users are compared with those that the broker knows."""
_TIMEOUT_SECONDS: Final = 5.0
_REFUSALS: Final = ("has no permissions", "unknown command", "unknown subcommand", "error in acl")
"""Parts of the answers of a broker that does not let the server make users, in lower case.

An unknown subcommand or rule is that of an old broker.
"""

WorkerBrokerUsers = Literal["separate", "shared", "unknown"]


@dataclass(frozen=True, slots=True)
class BrokerAccess:
    """The broker's address for a worker.

    Attributes:
        url: Address with user and password.
        password_hash: SHA-256 of the password, in hexadecimal; `None` for the shared user.
    """

    url: str
    password_hash: str | None


class BrokerUsers:
    """Makes the workers' users in the broker.

    Args:
        settings: Addresses of the broker, for the server and for workers.
    """

    def __init__(self, settings: Settings) -> None:
        self._url = settings.broker_url.get_secret_value()
        for_workers = settings.worker_broker_url
        self._worker_url = for_workers.get_secret_value() if for_workers else self._url
        self._has_shared_user = (
            for_workers is not None and urlsplit(self._worker_url).password is not None
        )
        self.kind: WorkerBrokerUsers = "unknown"
        """Whether each worker has a user of its own; unknown until the broker first answered."""

    def grant(self, worker_id: str) -> BrokerAccess:
        """Returns the broker's address for a worker, with a new password.

        While it is unknown whether the broker lets the server make users, the address of the
        shared user is returned if the settings have one.
        """
        location = urlsplit(self._worker_url)
        if self.kind == "shared" or (self.kind == "unknown" and self._has_shared_user):
            return BrokerAccess(self._worker_url, None)
        password = secrets.token_hex(24)
        _, _, host = location.netloc.rpartition("@")
        url = urlunsplit(location._replace(netloc=f"{worker_id}:{password}@{host}"))
        return BrokerAccess(url, sha256(password.encode()).hexdigest())

    async def run(self, database: Database, bus: Bus) -> None:
        """Makes and ends users whenever workers register or are forgotten, until cancelled."""
        changes = bus.subscribe(BROKER_USERS)
        try:
            while True:
                try:
                    await self.update(database)
                # The database may be back at the next round.
                except Exception as error:  # noqa: BLE001
                    _log.warning("broker.users_not_updated", error=type(error).__name__)
                await changes.wait(CHECK_SECONDS)
        finally:
            bus.unsubscribe(changes)

    async def update(self, database: Database) -> None:
        """Makes the users that the broker does not know, and ends those of forgotten workers.

        A broker that cannot be reached is asked again at the next call.
        """
        async with database.read() as session:
            queues = await rows.list_queues(session)
        try:
            await asyncio.to_thread(self._update_broker, queues)
        except ResponseError as error:
            if any(part in str(error).lower() for part in _REFUSALS):
                self._note_kind("shared", str(error))
            else:
                _log.warning("broker.users_not_updated", error=str(error))
        except (RedisError, OSError):
            # The dispatcher says why it reaches no broker.
            pass
        else:
            self._note_kind("separate")

    def _update_broker(self, queues: Mapping[str, WorkerQueue]) -> None:
        with Redis.from_url(
            self._url,
            single_connection_client=True,
            decode_responses=True,
            socket_timeout=_TIMEOUT_SECONDS,
            socket_connect_timeout=_TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 0),
        ) as connection:
            lines = [line.split() for line in _execute_acl(connection, "LIST")]
            present = {words[1]: words for words in lines}
            for worker_id, queue in queues.items():
                words = present.get(worker_id, ())
                if queue.password_hash is None:
                    if words:
                        _execute_acl(connection, "DELUSER", worker_id)
                elif f"#{queue.password_hash}" not in words:
                    _execute_acl(connection, "SETUSER", worker_id, *build_rules(queue))

    def _note_kind(self, kind: WorkerBrokerUsers, reason: str = "") -> None:
        if kind == self.kind:
            return
        self.kind = kind
        if kind == "shared":
            _log.warning(
                "broker.workers_share_a_user",
                reason=reason,
                remedy="permit the server's user of the broker +acl|list, +acl|setuser and "
                "+acl|deluser: each worker then reaches its own queue alone",
            )
        else:
            _log.info("broker.workers_have_separate_users")


def _execute_acl(connection: Redis, *words: str) -> Any:
    # redis-py's own function for SETUSER knows no rules of selectors.
    return connection.execute_command("ACL", *words)  # type: ignore[no-untyped-call]


def build_rules(queue: WorkerQueue) -> list[str]:
    """Returns the rules of a worker's user: it takes messages from its own queue.

    Celery, kombu 5.7 and redis-py send these commands. The keys of bindings are in a selector, so
    that `SADD` cannot make another key out of an empty queue.
    """
    bindings = " ".join(
        f"~_kombu.{kind}.{queue.name}*" for kind in ("binding", "binding_permanent")
    )
    return [
        *("reset", "on", f"#{queue.password_hash}", f"~{queue.name}*"),
        *("+ping", "+hello", "+client|setinfo", "+brpop", "+llen", "+multi", "+exec"),
        f"({bindings} +sadd)",
    ]
