"""Several servers on one PostgreSQL as real processes, behind a proxy that skips stopped ones."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import httpx
import psycopg

from tests.support.process_stack import Stack, find_free_port
from tests.support.proxy import BalancingProxy
from tests.support.waiting import wait_for

HELD = "tests.support.holding_worker"
_ANSWER_SECONDS: Final = 2.0
"""Time after which a server that does not answer is asked again."""


class SeveralServers(Stack):
    """Servers with daemons, a broker, and workers whose attempts may be held without a trainer.

    Args:
        directory: Data directory of all processes.
        database_url: URL of an empty PostgreSQL database.
        servers: Number of servers.
        slots: Number of slots of each worker.
        hold_seconds: Bounds of the time for which an attempt holds its slot.
        settings: Further environment variables of the servers.
    """

    def __init__(
        self,
        directory: Path,
        database_url: str,
        *,
        servers: int = 2,
        slots: int = 4,
        hold_seconds: tuple[float, float] = (0.2, 2.0),
        settings: dict[str, str] | None = None,
    ) -> None:
        worker = {"PALESTRA_TEST_HOLD_SECONDS": f"{hold_seconds[0]},{hold_seconds[1]}"}
        super().__init__(
            directory,
            slots=slots,
            database_url=database_url,
            settings=settings,
            worker=worker,
        )
        self._environment["PALESTRA_BUS_URL"] = self._environment["PALESTRA_BROKER_URL"]
        self.worker_module = HELD
        self.ports = {f"server-{number + 1}": find_free_port() for number in range(servers)}
        self.proxy = BalancingProxy(list(self.ports.values()))
        self.url = self.worker_url = self.proxy.url if servers > 1 else self.address("server-1")
        self._http.close()
        self._http = httpx.Client(base_url=self.url, timeout=60, trust_env=False)

    def __exit__(self, *arguments: object) -> None:
        super().__exit__(*arguments)
        self.proxy.close()

    def address(self, name: str) -> str:
        """Returns the address of one server."""
        return f"http://127.0.0.1:{self.ports[name]}"

    def start_server(self) -> None:
        """Starts all servers."""
        with ThreadPoolExecutor() as threads:
            list(threads.map(self.start_one, self.ports))

    def start_one(self, name: str) -> None:
        """Starts a server, with its name as the name of its connections to the database."""
        more = {"PALESTRA_PORT": str(self.ports[name]), **self._name_connections(name)}
        self._start(name, [sys.executable, "-m", "app.main"], more)
        wait_for(lambda: self.readiness(name), f"{name} is ready\n{self.log(name)}")

    def start_daemons(self, name: str) -> None:
        """Starts daemons as a process of their own, and waits until they run."""
        self._start(name, [sys.executable, "-m", "app.daemons"], self._name_connections(name))
        wait_for(lambda: "daemons.ready" in self.log(name), f"{name} runs\n{self.log(name)}")

    def _name_connections(self, name: str) -> dict[str, str]:
        separator = "&" if "?" in self.database_url else "?"
        return {"PALESTRA_DATABASE_URL": f"{self.database_url}{separator}application_name={name}"}

    def readiness(self, name: str) -> dict[str, Any] | None:
        """Returns what `/readyz` of one server answers; `None` if it is not ready."""
        try:
            answer = httpx.get(
                f"{self.address(name)}/readyz", timeout=_ANSWER_SECONDS, trust_env=False
            )
        except httpx.HTTPError:
            return None
        return dict(answer.json()) if answer.is_success else None

    def find_holder(self) -> str | None:
        """Returns the name of the process that holds the lease of the dispatcher."""
        rows = self.query("SELECT holder FROM dispatcher_lease WHERE held_until > now()")
        for name, process in self.processes.items():
            if rows and str(rows[0][0]).endswith(f"process {process.pid}"):
                return name
        return None

    def query(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Returns the rows of a query of the database."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            return connection.execute(statement.encode(), parameters).fetchall()
