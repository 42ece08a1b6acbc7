"""Finds the server and the token of a command.

They come from options, variables, the embedded Palestra of this directory, or `palestra login`.

Reads and writes the file of logins.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from palestra.cli.embedded.datadir import DataDir, read_json, write_private
from palestra.cli.output import CommandError, usage, warn
from palestra.client import Client

DEFAULT_DATA_DIR: Final = ".palestra"

Server = Annotated[
    str | None, typer.Option("--server", envvar="PALESTRA_SERVER", help="Address of the server.")
]
TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", envvar="PALESTRA_TOKEN_FILE", help="File with the API token."),
]
Json = Annotated[
    bool, typer.Option("--json", envvar="PALESTRA_JSON", help="Answer in JSON, for programs.")
]


def connect(server: str | None = None, token_file: Path | None = None) -> Client:
    """Returns a client for the named server, or for the default one.

    Args:
        server: Its address; `None` takes that of the Palestra that runs in this directory or one
            above, else that of the latest `palestra login`.
        token_file: File with the API token; `None` takes the variable `PALESTRA_TOKEN`, else the
            token that belongs to the server.

    Raises:
        CommandError: If no server or no token is found; the message states how to name one.
    """
    embedded = find_embedded()
    url = server or str(embedded.get("url", "")) or str(read_logins().get("default", ""))
    if not url:
        usage(
            "no server: start one here with `palestra up`, or name one with --server URL or "
            "`palestra login URL`"
        )
    return Client(url, _token(url.rstrip("/"), token_file, embedded))


def _token(url: str, token_file: Path | None, embedded: Mapping[str, Any]) -> str:
    if token_file is not None:
        return read_token(token_file)
    if token := os.environ.get("PALESTRA_TOKEN"):
        return token
    if url == embedded.get("url"):
        return read_token(Path(embedded["token_file"]))
    token = str(read_logins().get("tokens", {}).get(url, ""))
    if not token:
        usage(
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
        usage(f"{path}: {getattr(error, 'strerror', None) or 'is not text'}")
    if not token or not token.isascii() or not token.isprintable():
        usage(f"{path}: holds no token")
    return token


def logins_path() -> Path:
    """Returns the path of the file in which `palestra login` stores tokens."""
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "palestra" / "logins.json"


def read_logins() -> dict[str, Any]:
    """Returns the stored logins: `default`, the latest server, and `tokens` by server."""
    return read_json(logins_path())


def keep_login(url: str, token: str) -> Path:
    """Stores a server's token, readable for this user only, and makes that server the default."""
    logins = read_logins()
    tokens = {**logins.get("tokens", {}), url: token}
    try:
        write_private(logins_path(), json.dumps({"default": url, "tokens": tokens}))
    except OSError as error:
        raise CommandError(f"cannot write {logins_path()}: {error.strerror}") from None
    return logins_path()
