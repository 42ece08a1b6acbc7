"""The methods of `palestra.Client` that read what was used."""

from collections.abc import Iterator
from typing import Any

from palestra.client_methods import ClientMethods
from palestra.contract.quotas import OwnQuotasView
from palestra.contract.usage import UsageQuery, UsageReport


class UsageMethods(ClientMethods):
    """Accounting: device-seconds by project, person, experiment, environment, pool and time."""

    def usage(self, query: UsageQuery | None = None) -> UsageReport:
        """Returns the usage within a period, by default that of a week by project."""
        return self._connection.get(UsageReport, "/usage", self._parameters(query))

    def own_quotas(self) -> OwnQuotasView:
        """Returns the quotas that limit you in the pools, with what is left of them."""
        return self._connection.get(OwnQuotasView, "/usage/quotas")

    def export_usage(self, query: UsageQuery | None = None) -> Iterator[bytes]:
        """Yields the usage as lines of CSV, with all groups, without line breaks.

        Raises:
            PalestraError: If the server refused, or the connection broke before the last line.
        """
        for line in self._connection.lines("/usage:export", self._parameters(query)):
            yield line.removesuffix(b"\r")

    def _parameters(self, query: UsageQuery | None) -> dict[str, Any]:
        wanted = (query or UsageQuery()).model_dump(mode="json")
        if wanted["project"] is None:
            wanted["project"] = self._project
        return wanted
