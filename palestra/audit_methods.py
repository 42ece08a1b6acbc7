"""The methods of `palestra.Client` that read the audit log."""

from collections.abc import Iterator
from typing import Any

from palestra.client_methods import PAGE_SIZE, ClientMethods
from palestra.contract.audit import AuditEntry, AuditQuery


class AuditMethods(ClientMethods):
    """Reads and exports the audit log. Requires the scope `admin`."""

    def audit(self, query: AuditQuery | None = None) -> Iterator[AuditEntry]:
        """Yields entries of the audit log, newest first. Requires the scope `admin`."""
        wanted = {**_list_parameters(query, self._project), "limit": PAGE_SIZE}
        return self._connection.pages(AuditEntry, "/audit", wanted)

    def export_audit(self, query: AuditQuery | None = None) -> Iterator[bytes]:
        """Yields entries of the audit log as JSON lines without line breaks, oldest first.

        Requires the scope `admin`. The lines are those of the server, so that the hash of each can
        be computed from them.

        Raises:
            PalestraError: If the server refused, or the connection broke before the last line.
        """
        return self._connection.lines("/audit:export", _list_parameters(query, self._project))


def _list_parameters(query: AuditQuery | None, project: str | None) -> dict[str, Any]:
    parameters = {} if query is None else query.model_dump(mode="json")
    return {**parameters, "project": project}
