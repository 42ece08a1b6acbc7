"""Checks whether the server's disks accept writes.

Called by `/readyz`; a full disk is tried again at each call, at most once a second.
"""

import asyncio
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from app.db.engine import Database
from app.domain.errors import StorageFullError
from app.services.artifacts.blob_store import BlobStore

_LOOK_SECONDS: Final = 1.0
_LOW_BYTES: Final = 2**20
"""Free bytes on the disk of an SQLite database below which a test write is made.

SQLite can continue for a while within its allocated files.
"""


class Storage:
    """The disks of the database and of the blobs.

    Args:
        databases: Record whether their latest write failed because the disk was full. They are
            the same database, with separate connections.
        store: The blobs.
        database_file: The file of an SQLite database; `None` for a database server, which watches
            its own disk.
    """

    def __init__(
        self, databases: Sequence[Database], store: BlobStore, database_file: Path | None
    ) -> None:
        self._databases = databases
        self._store = store
        self._file = database_file
        self._looked = -_LOOK_SECONDS
        self._fault: str | None = None
        self._lock = asyncio.Lock()

    async def find_fault(self) -> str | None:
        """Returns why writes cannot succeed now, as a sentence; `None` while they can."""
        async with self._lock:
            if time.monotonic() - self._looked >= _LOOK_SECONDS:
                self._fault = await self._look()
                self._looked = time.monotonic()
        return self._fault

    async def _look(self) -> str | None:
        try:
            is_low = await asyncio.to_thread(self._is_low)
            for database in self._databases:
                if is_low or database.is_full:
                    await database.try_to_write()
            await asyncio.to_thread(
                self._store.try_out if self._store.is_full else self._store.check_room
            )
        except StorageFullError as error:
            return error.detail
        return None

    def _is_low(self) -> bool:
        return self._file is not None and shutil.disk_usage(self._file.parent).free < _LOW_BYTES
