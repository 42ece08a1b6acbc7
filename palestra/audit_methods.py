"""The methods of `palestra.Client` that read the audit log."""

from collections.abc import Iterator
from typing import Any

from palestra.client_methods import PAGE_SIZE, ClientMethods
from palestra.contract.audit import AuditEntry, AuditQuery


class AuditMethods(ClientMethods):
    """Reads and exports the audit log. Requires the scope `admin`."""

    def audit(self, query: AuditQuery | None = None) -> Iterator[AuditEntry]:
        """Yields entries of the audit log, newest first. Requires the scope `admin`."""
        wanted = {**_parameters(query), "limit": PAGE_SIZE}
        return self._connection.pages(AuditEntry, f"{self._within}/audit", wanted)

    def export_audit(self, query: AuditQuery | None = None) -> Iterator[bytes]:
        """Yields entries of the audit log as JSON lines without line breaks, oldest first.

        Requires the scope `admin`. The lines are those of the server, so that the hash of each can
        be computed from them.

        Raises:
            PalestraError: If the server refused, or the connection broke before the last line.
        """
        return self._connection.lines(f"{self._within}/audit:export", _parameters(query))


def _parameters(query: AuditQuery | None) -> dict[str, Any]:
    return {} if query is None else query.model_dump(mode="json")
