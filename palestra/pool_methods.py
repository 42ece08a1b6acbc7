"""The methods of `palestra.Client` that read pools and workers."""

from collections.abc import Iterator

from palestra.client_methods import ClientMethods
from palestra.connection import path_part
from palestra.contract.resources import CatalogueView, PoolView, WorkerView


class PoolMethods(ClientMethods):
    """Pools of workers, and what the workers offer."""

    def pools(self) -> Iterator[PoolView]:
        """Yields pools with their queues."""
        return self._connection.pages(PoolView, "/pools")

    def catalogue(self, pool: str = "default") -> CatalogueView:
        """Returns the agents and environments that a pool's workers offer."""
        return self._connection.get(CatalogueView, "/catalogue", {"pool": pool})

    def workers(self) -> Iterator[WorkerView]:
        """Yields workers."""
        return self._connection.pages(WorkerView, "/workers")

    def forget_worker(self, worker_id: str) -> WorkerView:
        """Revokes a worker's secret, so that its name can be enrolled again at once.

        Requires the scope `admin`.
        """
        return self._connection.post(WorkerView, f"/workers/{path_part(worker_id)}:forget")
