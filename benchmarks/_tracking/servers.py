"""The servers under measurement, each in processes of its own, started as its users start it."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import httpx
import psutil

from benchmarks import list_queries
from benchmarks._tracking import load
from benchmarks._tracking.clients import MlflowClient, TrackioClient
from benchmarks._tracking.load import Load
from benchmarks._tracking.workloads import Workload
from tests.support.process_stack import REPOSITORY, find_free_port
from tests.support.waiting import wait_for

ENVIRONMENTS: Final = REPOSITORY / ".setup"
"""`make bench-peers` installs each peer into an environment of its own in here."""
CURVE: Final = "curve"
"""Series with many points, which `fill_curve` writes."""
MEMBERS: Final = 20
"""Parameters of each run of `fill_runs`, beside agent and environment."""
SERIES: Final = 20
"""Series of each run of `fill_runs`."""
SCORE: Final = "score"
_START_SECONDS: Final = 600.0
"""MLflow takes ten seconds on an idle machine, and minutes on a busy one."""
_READS: Final = 7


def time_reads(read: Callable[[], int]) -> list[float]:
    """Returns the seconds of several reads in ascending order, after one that is not counted."""
    times = []
    for _ in range(_READS + 1):
        began = time.perf_counter()
        assert read() > 0
        times.append(time.perf_counter() - began)
    return sorted(times[1:])


class TrackingServer(ABC):
    """A server that stores runs and curves.

    Args:
        directory: Empty directory of its data.
    """

    name: str
    has_lists: ClassVar[bool] = False
    """Whether the server itself filters and sorts runs."""
    process: subprocess.Popen[bytes] | None = None

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = find_free_port()

    @abstractmethod
    def start(self) -> None:
        """Starts it and waits until it answers."""

    @abstractmethod
    def measure_load(self, workload: Workload, seconds: float) -> Load:
        """Sends the work to new runs."""

    @abstractmethod
    def fill_curve(self, points: int) -> None:
        """Stores a curve, by the quickest way that there is."""

    @abstractmethod
    def read_curve(self) -> int:
        """Reads the curve as a chart of 1,000 points does; returns how many were answered."""

    def fill_runs(self, runs: int) -> None:
        """Stores finished runs of the agents and environments of `list_queries`."""
        raise NotImplementedError

    def read_runs(self) -> int:
        """Reads the best 100 runs of one agent and environment; returns how many were answered."""
        raise NotImplementedError

    def time_curve(self) -> list[float]:
        """Returns the seconds of several reads, after one that is not counted."""
        return time_reads(self.read_curve)

    def time_runs(self) -> list[float]:
        """Returns the seconds of several lists, or none of a server that has no such lists."""
        return time_reads(self.read_runs) if self.has_lists else []

    def measure_memory(self) -> float:
        """Returns the MiB of its processes; pages that they share count once."""
        assert self.process is not None
        root = psutil.Process(self.process.pid)
        processes = [root, *root.children(recursive=True)]
        return sum(one.memory_full_info().pss for one in processes) / 2**20

    def stop(self) -> None:
        """Ends the processes that were started."""
        if self.process is None:
            return
        family = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        for one in family:
            if one.is_running():
                one.kill()

    def _spawn(self, command: Sequence[str], **variables: str) -> None:
        with (self.directory / "server.log").open("ab") as output:
            self.process = subprocess.Popen(
                command,
                env={**os.environ, **variables},
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def _wait_for(self, path: str) -> None:
        def is_up() -> bool:
            try:
                return httpx.get(f"http://127.0.0.1:{self.port}{path}", timeout=5).is_success
            except httpx.HTTPError:
                return False

        wait_for(is_up, f"{self.name} answers", patience_seconds=_START_SECONDS)

    def _post(self, path: str, body: Any, headers: dict[str, str] | None = None) -> Any:
        url = f"http://127.0.0.1:{self.port}{path}"
        answer = httpx.post(url, json=body, headers=headers, timeout=300)
        answer.raise_for_status()
        return answer.json()


class Mlflow(TrackingServer):
    """`mlflow server` on SQLite, with its usual number of processes."""

    name = "MLflow (SQLite)"
    has_lists = True
    _run_id = ""

    def start(self) -> None:
        store = f"sqlite:///{self.directory / 'mlflow.db'}"
        place = ["--host", "127.0.0.1", "--port", str(self.port), "--backend-store-uri", store]
        command = [str(ENVIRONMENTS / "mlflow/bin/mlflow"), "server", *place]
        path = f"{ENVIRONMENTS / 'mlflow/bin'}:{os.environ['PATH']}"
        self._spawn(command, PATH=path, MLFLOW_DISABLE_TELEMETRY="true")
        self._wait_for("/health")

    def _make_run(self) -> str:
        made = self._post("/api/2.0/mlflow/runs/create", {"experiment_id": "0", "start_time": 0})
        return str(made["run"]["info"]["run_id"])

    def measure_load(self, workload: Workload, seconds: float) -> Load:
        clients = [MlflowClient(self._make_run()) for _ in range(workload.clients)]
        return load.measure(self.port, workload, clients, seconds)

    def fill_curve(self, points: int) -> None:
        """Inserts the rows into the database, since the server would take minutes."""
        self._run_id = self._make_run()
        statement = (
            "INSERT INTO metrics (key, value, timestamp, run_uuid, step, is_nan) "
            "VALUES (?, ?, ?, ?, ?, 0)"
        )
        rows = ((CURVE, 1.0 / (1 + step), step, self._run_id, 64 * step) for step in range(points))
        with sqlite3.connect(self.directory / "mlflow.db", timeout=60) as connection:
            connection.executemany(statement, rows)

    def read_curve(self) -> int:
        path = "/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval"
        wanted = {"run_ids": self._run_id, "metric_key": CURVE, "max_results": "1000"}
        url = f"http://127.0.0.1:{self.port}{path}"
        answer = httpx.get(url, params=wanted, timeout=300).raise_for_status()
        return len(answer.json()["metrics"])

    def fill_runs(self, runs: int) -> None:
        """Inserts the rows into the database, since the server would take an hour."""
        chooser = random.Random(1)
        with sqlite3.connect(self.directory / "mlflow.db", timeout=60) as connection:
            for number in range(runs):
                run_id = f"{number:032x}"
                agent, env = (
                    chooser.randrange(list_queries.AGENTS),
                    chooser.randrange(list_queries.ENVIRONMENTS),
                )
                connection.execute(
                    "INSERT INTO runs (run_uuid, name, status, start_time, end_time, "
                    "lifecycle_stage, artifact_uri, experiment_id, source_type, user_id) "
                    "VALUES (?, ?, 'FINISHED', ?, ?, 'active', '', 0, 'LOCAL', 'bench')",
                    (run_id, f"run {number}", number, number + 1),
                )
                members = {"agent": f"agent-{agent}", "env": f"env-{env}"}
                members |= {f"p{place}": "1.0" for place in range(MEMBERS)}
                connection.executemany(
                    "INSERT INTO params (key, value, run_uuid) VALUES (?, ?, ?)",
                    [(key, value, run_id) for key, value in members.items()],
                )
                connection.executemany(
                    "INSERT INTO latest_metrics (key, value, timestamp, step, is_nan, run_uuid) "
                    "VALUES (?, ?, 0, 10, 0, ?)",
                    [
                        (f"{SCORE}{place or ''}", chooser.uniform(0, 500), run_id)
                        for place in range(SERIES)
                    ],
                )

    def read_runs(self) -> int:
        wanted = {
            "experiment_ids": ["0"],
            "filter": "params.agent = 'agent-1' and params.env = 'env-2'",
            "order_by": [f"metrics.{SCORE} DESC"],
            "max_results": 100,
        }
        return len(self._post("/api/2.0/mlflow/runs/search", wanted)["runs"])


class Trackio(TrackingServer):
    """The server of `trackio show`."""

    name = "Trackio"
    _token = "bench"
    _runs = 0

    def start(self) -> None:
        script = (
            "import trackio; trackio.show(open_browser=False, block_thread=True, "
            f"host='127.0.0.1', server_port={self.port}, share=False)"
        )
        command = [str(ENVIRONMENTS / "trackio/bin/python"), "-c", script]
        self._spawn(command, TRACKIO_DIR=str(self.directory), TRACKIO_WRITE_TOKEN=self._token)
        self._wait_for("/")

    def _make_client(self, project: str) -> TrackioClient:
        self._runs += 1
        return TrackioClient(project, f"run-{self._runs}", self._token)

    def measure_load(self, workload: Workload, seconds: float) -> Load:
        clients = [self._make_client("bench") for _ in range(workload.clients)]
        return load.measure(self.port, workload, clients, seconds)

    def fill_curve(self, points: int) -> None:
        client = self._make_client("long")
        for first in range(0, points, 10_000):
            logs = [
                {
                    "project": "long",
                    "run": "long",
                    "step": 64 * step,
                    "metrics": {CURVE: 1.0 / (1 + step)},
                }
                for step in range(first, min(first + 10_000, points))
            ]
            body = {"args": [], "kwargs": {"logs": logs, "hf_token": None}}
            self._post(client.path, body, client.headers)

    def read_curve(self) -> int:
        wanted = {"project": "long", "run": "long", "metric_name": CURVE, "max_points": 1_000}
        return len(self._post("/api/get_metric_values", wanted)["data"])


class Aim(TrackingServer):
    """`aim server`, which its own library writes to."""

    name = "Aim"

    def start(self) -> None:
        place = ["--host", "127.0.0.1", "--port", str(self.port)]
        command = [str(ENVIRONMENTS / "aim/bin/aim"), "server", *place]
        self._spawn([*command, "--repo", str(self.directory), "-y"])
        self._wait_for("/status/")

    def measure_load(self, workload: Workload, seconds: float) -> Load:
        sizes = (workload.clients, workload.steps, workload.series, seconds)
        command = [
            str(ENVIRONMENTS / "aim/bin/python"),
            str(REPOSITORY / "benchmarks/_tracking/aim_load.py"),
            f"aim://127.0.0.1:{self.port}",
            *map(str, sizes),
        ]
        done = subprocess.run(command, capture_output=True, check=False, timeout=600)
        assert done.returncode == 0, done.stderr.decode(errors="replace")[-500:]
        answer = json.loads(done.stdout.splitlines()[-1])
        # The library answers before the server has the points, so these are no times of batches.
        return Load(answer["points"] / answer["seconds"], [], 0)

    def fill_curve(self, points: int) -> None:
        raise NotImplementedError("Aim writes some thousand points a second")

    def read_curve(self) -> int:
        raise NotImplementedError("Aim has no curve to read")

    def time_curve(self) -> list[float]:
        """Returns no times: a million points would take Aim ten minutes to write."""
        return []


PEERS: Final[dict[str, type[TrackingServer]]] = {
    "trackio": Trackio,
    "mlflow": Mlflow,
    "aim": Aim,
}


def list_installed(names: Sequence[str]) -> list[str]:
    """Returns the installed peers; prints how to install the others."""
    found = []
    for name in names:
        if (ENVIRONMENTS / name / "bin/python").exists():
            found.append(name)
        else:
            print(f"{name} is left out: `make bench-peers` installs it")
    return found
