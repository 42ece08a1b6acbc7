"""Stores when and from where credentials were last used, every few seconds and not per request."""

import asyncio
from typing import Final

import structlog

from app.db.engine import Database
from app.db.repositories import access as rows

_log = structlog.get_logger("palestra.access")

PERIOD_SECONDS: Final = 20.0


class UsedCredentials:
    """Credentials used since the last flush."""

    def __init__(self) -> None:
        self._tokens: dict[str, str] = {}
        self._sessions: dict[str, str] = {}

    def note(self, token_id: str | None, session_id: str | None, address: str) -> None:
        """Records that a token or a login was used from an address; empty if it has none."""
        if token_id is not None:
            self._tokens[token_id] = address
        if session_id is not None:
            self._sessions[session_id] = address

    async def flush(self, database: Database) -> None:
        """Stores time and address of the latest use of the recorded credentials."""
        tokens, self._tokens = self._tokens, {}
        sessions, self._sessions = self._sessions, {}
        if tokens or sessions:
            async with database.write() as session:
                await rows.touch(session, tokens, sessions)

    async def run(self, database: Database) -> None:
        """Flushes until cancelled.

        The times of a failed flush are lost, which affects only the displayed time of last use.
        """
        while True:
            await asyncio.sleep(PERIOD_SECONDS)
            try:
                await self.flush(database)
            # The database may be away; the next flush comes.
            except Exception as error:  # noqa: BLE001
                _log.warning("touches.failed", error=type(error).__name__)
