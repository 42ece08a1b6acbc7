"""The methods of `palestra.Client` that manage pools and workers."""

from collections.abc import Iterator

from palestra.client_methods import PAGE_SIZE, ClientMethods
from palestra.connection import encode_path_part
from palestra.contract.pool_windows import PoolWindowRequest, PoolWindowView
from palestra.contract.pools import (
    EnrolmentTokenRequest,
    EnrolmentTokenView,
    PoolAdmission,
    PoolChange,
    PoolPause,
    PoolRequest,
    PoolView,
    WorkerView,
)
from palestra.contract.queue import EstimateAccuracy
from palestra.contract.quotas import ProjectQuotasView, QuotaChange
from palestra.contract.resources import CatalogueView, JobView
from palestra.contract.usage import PoolSharesView
from palestra.contract.waiting_queue import LaneView, WaitingQueueView


class PoolMethods(ClientMethods):
    """Pools of workers, and what the workers offer.

    Changes need a server administrator with the scope `admin`.
    """

    def pools(self) -> Iterator[PoolView]:
        """Yields the pools that you may use, or all of them for an administrator, by name."""
        return self._connection.pages(PoolView, "/pools")

    def pool(self, name: str) -> PoolView:
        """Returns a pool with its queue."""
        return self._connection.get(PoolView, _path(name))

    def waiting_jobs(
        self, name: str, *, priority_class: str | None = None, user: str | None = None
    ) -> Iterator[JobView]:
        """Yields the waiting jobs of a pool in the order in which they will start.

        Args:
            name: Name of the pool.
            priority_class: Class of the jobs; `None` for all.
            user: Login name of who submitted them, `me` for the token's user; `None` for all.
        """
        wanted = {"priority_class": priority_class, "user": user, "limit": PAGE_SIZE}
        cursor: str | None = None
        while True:
            page = self._connection.get(
                WaitingQueueView, f"{_path(name)}/queue", {**wanted, "cursor": cursor}
            )
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def lanes(self, name: str) -> list[LaneView]:
        """Returns the numbers of waiting jobs of a pool, by class."""
        path = f"{_path(name)}/queue"
        return self._connection.get(WaitingQueueView, path, {"limit": 1}).lanes

    def create_pool(self, request: PoolRequest) -> PoolView:
        """Creates a pool, which admits the projects that the request names."""
        return self._connection.post(PoolView, "/pools", request)

    def change_pool(self, name: str, change: PoolChange) -> PoolView:
        """Changes the members that are set in `change`, explicit `None` included; others stay."""
        return self._connection.send(PoolView, "PATCH", _path(name), body=change)[0]

    def pause_pool(self, name: str, reason: str) -> PoolView:
        """Pauses a pool: no job of it starts, running ones go on."""
        return self._connection.post(PoolView, f"{_path(name)}:pause", PoolPause(reason=reason))

    def resume_pool(self, name: str) -> PoolView:
        """Ends the pause of a pool."""
        return self._connection.post(PoolView, f"{_path(name)}:resume")

    def delete_pool(self, name: str) -> None:
        """Deletes a pool that has no live worker and no job that has not ended."""
        self._connection.delete(_path(name))

    def admit_project(self, name: str, project: str, *, share: float = 1.0) -> PoolView:
        """Admits a project to a pool, or changes its share."""
        path = f"{_path(name)}/projects/{encode_path_part(project)}"
        return self._connection.send(PoolView, "PUT", path, body=PoolAdmission(share=share))[0]

    def remove_project(self, name: str, project: str) -> None:
        """Ends the admission of a project: its queued jobs wait, its running ones go on."""
        self._connection.delete(f"{_path(name)}/projects/{encode_path_part(project)}")

    def pool_shares(self, name: str) -> PoolSharesView:
        """Returns the shares and the usage of a pool's projects and persons."""
        return self._connection.get(PoolSharesView, f"{_path(name)}/shares")

    def estimate_accuracy(self, name: str) -> EstimateAccuracy:
        """Returns how well the latest starts of a pool's jobs were estimated."""
        return self._connection.get(EstimateAccuracy, f"{_path(name)}/estimates")

    def quotas(self, name: str, project: str) -> ProjectQuotasView:
        """Returns the quotas of a project in a pool, with the used and the remaining amounts."""
        return self._connection.get(ProjectQuotasView, _quotas_path(name, project))

    def change_quotas(self, name: str, project: str, change: QuotaChange) -> ProjectQuotasView:
        """Changes the members that are set in `change`, explicit `None` included; others stay."""
        path = _quotas_path(name, project)
        return self._connection.send(ProjectQuotasView, "PATCH", path, body=change)[0]

    def pool_windows(self, name: str) -> Iterator[PoolWindowView]:
        """Yields the maintenance windows and reservations of a pool that have not ended."""
        return self._connection.pages(PoolWindowView, f"{_path(name)}/windows")

    def plan_pool_window(self, name: str, request: PoolWindowRequest) -> PoolWindowView:
        """Plans a maintenance window or a reservation."""
        return self._connection.post(PoolWindowView, f"{_path(name)}/windows", request)

    def cancel_pool_window(self, name: str, window_id: str) -> None:
        """Cancels a window, also one that has begun."""
        self._connection.delete(f"{_path(name)}/windows/{encode_path_part(window_id)}")

    def enrolment_tokens(self, name: str) -> Iterator[EnrolmentTokenView]:
        """Yields the tokens with which workers enrol in a pool."""
        return self._connection.pages(EnrolmentTokenView, f"{_path(name)}/enrolment-tokens")

    def create_enrolment_token(
        self, name: str, request: EnrolmentTokenRequest
    ) -> EnrolmentTokenView:
        """Creates a token with which workers enrol in a pool; the answer alone has its secret."""
        path = f"{_path(name)}/enrolment-tokens"
        return self._connection.post(EnrolmentTokenView, path, request)

    def revoke_enrolment_token(self, name: str, token_id: str) -> None:
        """Revokes an enrolment token; workers that enrolled with it go on."""
        self._connection.delete(f"{_path(name)}/enrolment-tokens/{encode_path_part(token_id)}")

    def catalogue(self, pool: str = "default") -> CatalogueView:
        """Returns the agents and environments that a pool's workers offer."""
        return self._connection.get(CatalogueView, "/catalogue", {"pool": pool})

    def workers(self) -> Iterator[WorkerView]:
        """Yields the workers of the pools that you may use."""
        return self._connection.pages(WorkerView, "/workers")

    def forget_worker(self, worker_id: str) -> WorkerView:
        """Revokes a worker's secret, so that its name can be enrolled again at once."""
        return self._connection.post(WorkerView, f"/workers/{encode_path_part(worker_id)}:forget")

    def rotate_worker_secret(self, worker_id: str) -> WorkerView:
        """Requests a new secret for a worker, which receives it with its next heartbeat."""
        return self._connection.post(
            WorkerView, f"/workers/{encode_path_part(worker_id)}:rotate-secret"
        )


def _path(name: str) -> str:
    return f"/pools/{encode_path_part(name)}"


def _quotas_path(name: str, project: str) -> str:
    return f"{_path(name)}/projects/{encode_path_part(project)}/quotas"
