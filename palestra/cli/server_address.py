"""Finds the server, the token and the project of a command.

They come from options, variables, the embedded Palestra of this directory, or `palestra login`.

Reads and writes the file of logins.
"""

import json
import os
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from palestra.addresses import AddressError, parse_server_address
from palestra.cli.embedded.datadir import DataDir, read_json, write_private
from palestra.cli.output import CommandError, fail_usage, warn
from palestra.client import Client

DEFAULT_DATA_DIR: Final = ".palestra"
ALL_PROJECTS: Final = "*"
"""What `--project` takes for all projects: it cannot be the slug of one."""

chosen_project: Final[ContextVar[str | None]] = ContextVar("chosen_project", default=None)
"""The project that was named before the sub-command: `palestra --project SLUG ...`."""

Server = Annotated[
    str | None, typer.Option("--server", envvar="PALESTRA_SERVER", help="Address of the server.")
]
TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", envvar="PALESTRA_TOKEN_FILE", help="File with the API token."),
]
Project = Annotated[
    str | None,
    typer.Option(
        "--project",
        envvar="PALESTRA_PROJECT",
        help="Slug of the project, or * for all of yours; else that of `palestra projects use`.",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", envvar="PALESTRA_JSON", help="Answer in JSON, for programs.")
]


def connect(
    server: str | None = None, token_file: Path | None = None, project: str | None = None
) -> Client:
    """Returns a client for the named server, or for the default one.

    Args:
        server: Its address; `None` takes that of the Palestra that runs in this directory or one
            above, else that of the latest `palestra login`.
        token_file: File with the API token; `None` takes the variable `PALESTRA_TOKEN`, else the
            token that belongs to the server.
        project: Slug, or `*` for all projects; `None` takes the one named before the sub-command
            or by `PALESTRA_PROJECT`, else the one that was remembered for the server.

    Raises:
        CommandError: If no server or no token is found; the message states how to name one.
    """
    url, token = find_server(server, token_file)
    named = project or chosen_project.get() or read_remembered_project(url) or ALL_PROJECTS
    return Client(url, token, project=None if named == ALL_PROJECTS else named)


def find_server(server: str | None, token_file: Path | None) -> tuple[str, str]:
    """Returns the address of the server of a command, and the token: see `connect`."""
    embedded = find_embedded()
    url = server or str(embedded.get("url", "")) or str(read_logins().get("default", ""))
    if not url:
        fail_usage(
            "no server: start one here with `palestra up`, or name one with --server URL or "
            "`palestra login URL`"
        )
    url = read_server_address(url)
    return url, _token(url, token_file, embedded)


def read_server_address(text: str) -> str:
    """Returns the address of a server in the form under which logins are stored.

    Raises:
        CommandError: If it is no address of a server.
    """
    try:
        return parse_server_address(text)
    except AddressError as error:
        fail_usage(f"the address of the server {error}")


def _token(url: str, token_file: Path | None, embedded: Mapping[str, Any]) -> str:
    if token_file is not None:
        return read_token(token_file)
    if token := os.environ.get("PALESTRA_TOKEN"):
        return token
    if url == embedded.get("url"):
        return read_token(Path(embedded["token_file"]))
    token = str(_read_of_server("tokens", url) or "")
    if not token:
        fail_usage(
            f"no token for {url}: log in with `palestra login {url}`, or name a file with "
            "--token-file"
        )
    return token


def find_embedded() -> dict[str, Any]:
    """Returns `url` and `token_file` of the embedded Palestra in this directory or one above.

    Empty if there is none.
    """
    data = find_data_dir()
    return (
        {}
        if data is None
        else {"url": data.read_state()["url"], "token_file": str(data.user_token)}
    )


def find_data_dir() -> DataDir | None:
    """Returns the data directory of the embedded Palestra in this directory or one above.

    `None` if there is none.
    """
    here = Path.cwd()
    found = (DataDir(directory / DEFAULT_DATA_DIR) for directory in (here, *here.parents))
    return next(
        (data for data in found if data.read_state().get("url") and data.user_token.exists()), None
    )


def read_token(path: Path) -> str:
    """Returns the token in a file.

    Raises:
        CommandError: If it cannot be read or is empty.
    """
    try:
        if path.stat().st_mode & 0o077:
            warn(f"warning: other users may read {path}: chmod 600 {path}")
        token = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        fail_usage(f"{path}: {getattr(error, 'strerror', None) or 'is not text'}")
    if not token or not token.isascii() or not token.isprintable():
        fail_usage(f"{path}: holds no token")
    return token


def get_logins_path() -> Path:
    """Returns the path of the file in which `palestra login` stores tokens."""
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "palestra" / "logins.json"


def read_logins() -> dict[str, Any]:
    """Returns what is stored: `default`, the latest server; `tokens`, `projects` by server."""
    return read_json(get_logins_path())


def keep_login(url: str, token: str) -> Path:
    """Stores a server's token, readable for this user only, and makes that server the default."""
    logins = read_logins()
    return _store({**logins, "default": url, "tokens": {**logins.get("tokens", {}), url: token}})


def require_writable_logins() -> None:
    """Ends the command where the file of logins cannot be written, before a token is made."""
    _store(read_logins())


def read_remembered_project(url: str) -> str | None:
    """Returns the project that `palestra projects use` chose for a server; `None` for all."""
    found = _read_of_server("projects", url)
    return found if isinstance(found, str) else None


def remember_project(url: str, slug: str | None) -> Path:
    """Stores the project of later commands for a server; `None` forgets it."""
    logins = read_logins()
    others = {server: kept for server, kept in logins.get("projects", {}).items() if server != url}
    return _store({**logins, "projects": others if slug is None else {**others, url: slug}})


def _read_of_server(kind: str, url: str) -> object:
    entries: dict[str, object] = read_logins().get(kind, {})
    return entries.get(url)


def _store(logins: Mapping[str, Any]) -> Path:
    try:
        write_private(get_logins_path(), json.dumps(logins))
    except OSError as error:
        raise CommandError(f"cannot write {get_logins_path()}: {error.strerror}") from None
    return get_logins_path()
