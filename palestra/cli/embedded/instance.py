"""An embedded Palestra: migrations, first admin, Valkey, server with daemons, and one worker.

Defines the order of starting and stopping. Reports progress through a function and prints nothing.
"""

import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NoReturn

import httpx

from palestra.cli.embedded import broker, ports
from palestra.cli.embedded.child_processes import ChildFailedError, Children, Program, end_leftovers
from palestra.cli.embedded.datadir import DataDir, write_private
from palestra.cli.embedded.signals import stop_signals
from palestra.cli.output import USAGE, CommandError
from palestra.client import Client
from palestra.processes import find_port_owner
from palestra.python_command import build_python_command
from palestra.telemetry.transport import open_client, read_problem

DEFAULT_PORT: Final = 8080
_STOP_ORDER: Final = ("worker", "server", "valkey")
_READY_SECONDS: Final = 60.0
_WORKER_SECONDS: Final = 60.0
_CLOCK_TOLERANCE: Final = timedelta(seconds=1)
_WORKER_GRACE: Final = 90.0
"""Seconds in which the trainings save and upload a snapshot before the worker ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceOptions:
    """Options of an instance that a user may choose."""

    data_dir: Path
    port: int | None = None
    """`None` takes the port of the last start, else 8080, else any free one.

    0 takes the port of the last start, else any free one.
    """
    slots: int = 2
    gpus: str = ""
    pool: str = "default"
    imports: tuple[str, ...] = ()
    """Modules that register environments, for the worker to import."""
    allowed_paths: tuple[Path, ...] = ()
    """Directories whose files definitions may name."""


class Instance:
    """A running Palestra on one data directory.

    Args:
        options: What the user chose.
        report: Called with a sentence about each step.
    """

    def __init__(self, options: InstanceOptions, report: Callable[[str], None]) -> None:
        self.options = options
        self.data = DataDir(options.data_dir.resolve())
        self.url = ""
        self.login_url = ""
        """Address that logs a browser in, once, within an hour of the start."""
        self._report = report
        self._children = Children(self.data, report)
        self._settings: dict[str, str] = {}

    @contextmanager
    def run(self) -> Iterator["Instance"]:
        """Starts everything, and stops it when the block ends or raises.

        Raises:
            CommandError: If it cannot start; one sentence.
        """
        with stop_signals(self._children.kill) as signals:
            self.data.prepare()
            with self.data.hold_lock():
                try:
                    self._start()
                    yield self
                except ChildFailedError as error:
                    raise CommandError(
                        f"{error.name}: {error}", USAGE if error.code == USAGE else 1
                    ) from None
                finally:
                    signals.is_stopping = True
                    self._children.stop(_STOP_ORDER)

    def _start(self) -> None:
        end_leftovers(self.data)
        state = self.data.read_state()
        port = self._choose_port(state)
        self.url = f"http://127.0.0.1:{port}"
        password = str(state.get("server_broker_password") or broker.generate_password())
        broker_port = ports.keep_or_free(state.get("broker_port"), avoid=port)
        self.data.write_state(
            {
                "url": self.url,
                "port": port,
                "broker_port": broker_port,
                "server_broker_password": password,
                "pid": os.getpid(),
            }
        )
        self._settings = {
            "PALESTRA_DATA_DIR": str(self.data.root),
            "PALESTRA_PORT": str(port),
            "PALESTRA_BROKER_URL": broker.build_broker_url(broker_port, password),
            "PYTHONUNBUFFERED": "1",
        }
        self._children.start(broker.build_broker_program(self.data, broker_port, password))
        self._prepare()
        self._wait(lambda: broker.ping(broker_port, password), _READY_SECONDS, "valkey")
        self._children.start(self._python("server", "app.main"))
        begun = datetime.now(UTC) - _CLOCK_TOLERANCE
        self._children.start(self._worker())
        with open_client(self.url, self._user_secret(), timeout=2) as http:
            self._wait(lambda: _is_ready(http), _READY_SECONDS, "server")
        with self.client() as client:
            self._wait(lambda: self._has_worker(client, begun), _WORKER_SECONDS, "worker")

    def _choose_port(self, state: dict[str, Any]) -> int:
        wanted = self.options.port
        if wanted:
            if not ports.is_free(wanted):
                owner = find_port_owner(wanted)
                raise CommandError(
                    f"port {wanted} is used{'' if owner is None else f' by pid {owner}'}: stop "
                    "it, or choose another with --port",
                    USAGE,
                )
            return wanted
        return ports.keep_or_free(state.get("port") or (DEFAULT_PORT if wanted is None else None))

    def restart_ended(self) -> None:
        """Restarts programs that have ended. Must be called a few times per second.

        Raises:
            CommandError: If a restart would not help.
        """
        self._children.restart_ended()

    def pid(self, name: str) -> int:
        """Returns the pid of `valkey`, `server` or `worker`."""
        return self._children.pid(name)

    def client(self) -> Client:
        """Returns a client with the permissions of a user."""
        return Client(self.url, self._user_secret())

    def _user_secret(self) -> str:
        return self.data.user_token.read_text("utf-8").strip()

    def _prepare(self) -> None:
        tokens = ((self.data.user_token, "read,submit,admin"), (self.data.worker_token, "worker"))
        wanted = {f"palestra up ({path.name})": (scopes, path) for path, scopes in tokens}
        options = [
            part
            for name, (scopes, path) in wanted.items()
            for part in ("--token", name, scopes, str(path))
        ]
        options += ["--pool", self.options.pool, "--worker", self._worker_name()]
        made = json.loads(
            self._children.run(self._python("app.admin", "app.admin", "prepare", *options))
        )
        for name, secret in made["tokens"].items():
            if secret is not None:
                write_private(wanted[name][1], secret)
        self.login_url = made["url"]

    def _worker(self) -> Program:
        options = {
            "--server": self.url,
            "--token-file": str(self.data.worker_token),
            "--state-dir": str(self.data.worker),
            "--pool": self.options.pool,
            "--slots": str(self.options.slots),
            "--name": self._worker_name(),
        }
        if self.options.gpus:
            options["--gpus"] = self.options.gpus
        arguments = [part for option in options.items() for part in option]
        arguments += [f"--import={module}" for module in self.options.imports]
        arguments += [f"--allow-path={path.resolve()}" for path in self.options.allowed_paths]
        return self._python(
            "worker",
            "workers.host",
            *arguments,
            settings={"PYTHONUNBUFFERED": "1"},
            grace=_WORKER_GRACE,
        )

    @staticmethod
    def _worker_name() -> str:
        return platform.node()[:64] or "embedded"

    def _python(
        self,
        name: str,
        module: str,
        *arguments: str,
        settings: dict[str, str] | None = None,
        grace: float = 20.0,
    ) -> Program:
        return Program(
            name,
            build_python_command(module, *arguments),
            self._settings if settings is None else settings,
            grace,
        )

    def _wait(self, question: Callable[[], bool], seconds: float, name: str) -> None:
        deadline = time.monotonic() + seconds
        while not question():
            if not self._children.is_alive(name) or time.monotonic() > deadline:
                self._give_up(name)
            time.sleep(0.05)

    def _give_up(self, name: str) -> NoReturn:
        lines = [line for line in self._children.tail(name).splitlines() if line.strip()]
        reason = f": {lines[-1]}" if lines else ""
        raise CommandError(f"the {name} did not start{reason} (all of it in {self.data.log(name)})")

    def _has_worker(self, client: Client, since: datetime) -> bool:
        """Returns whether the worker of this start has registered.

        A worker of an earlier start may still count as online, with another catalogue.
        """
        workers = [
            worker
            for worker in client.workers()
            if worker.pool == self.options.pool and worker.registered_at >= since
        ]
        return any(worker.state == "online" for worker in workers)


def _is_ready(http: httpx.Client) -> bool:
    """Returns whether the server answers requests, which it also does while its disk is full."""
    try:
        answer = http.get("/readyz")
    except httpx.HTTPError:
        return False
    return answer.is_success or read_problem(answer).get("code") == "storage_full"
