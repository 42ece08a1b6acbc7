"""Settings of the server: one flat model.

They are read from arguments, `PALESTRA_*` variables and an optional TOML file.
"""

import difflib
import os
import tomllib
from collections.abc import Callable, Collection, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import quote, unquote, urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from palestra.addresses import (
    AddressError,
    format_host,
    parse_database_address,
    parse_directory_address,
    parse_host,
    parse_network,
    parse_redis_address,
    parse_server_address,
)
from palestra.contract.wording import describe_fault

ENV_PREFIX: Final = "PALESTRA_"
OTHER_VARIABLES: Final = frozenset({"CONFIG", "SERVER", "TOKEN", "TOKEN_FILE", "PROJECT", "JSON"})
"""Variables with the prefix that other parts of Palestra read.

`WORKER_*` and `TEST_*` are left alone as well.
"""
_LISTS: Final = frozenset({"allowed_hosts", "trusted_proxies"})
"""Settings whose variables hold several values, separated by commas."""
RESERVED_SEGMENTS: Final = frozenset(
    {
        "account", "admin", "api", "assets", "benchmarks", "compare", "experiments",
        "favicon.svg", "healthz", "index.html", "login", "meander.svg", "p", "queue", "readyz",
        "runs", "scheme.js", "usage", "workers",
    }
)  # fmt: skip
"""First segments of the server's own paths, with which that of `public_url` cannot begin."""
OTHER_PREFIXES: Final = ("WORKER_", "TEST_", "BENCH_", "SETUP_")


class SettingsError(ValueError):
    """The settings cannot be used; the message is one line that a user can act on."""


class Settings(BaseModel):
    """All settings of a server process."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    data_dir: Path = Path(".palestra")
    """Directory of the database file, the stored blobs and the pid files."""

    database_url: SecretStr = SecretStr("")
    """`sqlite:///FILE` or `postgresql://USER:PASSWORD@HOST/NAME`.

    Empty means a SQLite file in `data_dir`.
    """

    broker_url: SecretStr = SecretStr("redis://127.0.0.1:6379/0")
    """Redis or Valkey that carries the Celery queue. `valkey://` is understood."""

    worker_broker_url: SecretStr | None = None
    """Broker address handed to workers at registration, where it differs from the server's own."""

    bus_url: SecretStr | None = None
    """Redis or Valkey for the live fan-out between server processes.

    `null`, or an empty variable, keeps it inside this process.
    """

    artifacts_url: str = ""
    """Where blobs are stored: a directory, as a path or as `file:///PATH`.

    Empty means `blobs` in `data_dir`.
    """

    reserve_mib: Annotated[int, Field(ge=0)] = 64
    """Free space that uploads leave on the disk of the blobs, for the database beside them.

    At most a twentieth of the disk.
    """

    host: str = "127.0.0.1"
    """Address to listen on."""

    port: Annotated[int, Field(ge=0, le=65_535)] = 8080
    """Port to listen on; 0 takes a free one."""

    allow_remote: bool = False
    """Permits to listen on an address that other machines reach.

    Set it behind a TLS proxy, or on a network that you trust.
    """

    public_url: str = ""
    """Address under which browsers and workers reach the server, for example
    `https://palestra.example.org` or `https://example.org/palestra`.
    """

    allowed_hosts: tuple[str, ...] = ()
    """Further host names that requests may carry, beside loopback, `host` and the one of
    `public_url`.
    """

    dashboard_dir: Path = Path(__file__).resolve().parent.parent / "frontend" / "dist"
    """Directory of the built dashboard."""

    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks of reverse proxies, for example `10.0.0.0/8`: only their
    `X-Forwarded-For` is believed.
    """

    max_connections: Annotated[int, Field(ge=0)] = 0
    """Open connections.

    0 takes three quarters of the files and sockets that the process may have open.
    """

    max_connections_per_address: Annotated[int, Field(ge=0)] = 0
    """Open connections of one address that is no trusted proxy; 0 takes half of all."""

    request_head_seconds: Annotated[float, Field(gt=0)] = 20.0
    """Time in which the line and the headers of a request must arrive."""

    daemons: bool = True
    """Whether this process runs the dispatcher, the reaper, the compactor and the remover."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["json", "console"] = "json"

    max_body_bytes: Annotated[int, Field(ge=1_024, le=2**30)] = 4 * 2**20
    """Largest JSON body; most routes take far less.

    Parsing 10 MiB blocks the other threads of the process for a tenth of a second.
    """

    session_idle_seconds: Annotated[int, Field(ge=60)] = 12 * 3_600
    session_max_seconds: Annotated[int, Field(ge=60)] = 14 * 86_400
    link_seconds: Annotated[int, Field(ge=60, le=86_400)] = 3_600
    """Life of a setup or login link."""
    tokens_without_end: bool = False
    """Whether people may make API tokens that never expire."""

    audit_keep_days: Annotated[int, Field(ge=0, le=36_500)] = 0
    """Days for which entries of the audit log are kept; 0 keeps them for ever."""

    project_restore_days: Annotated[int, Field(ge=0, le=3_650)] = 30
    """Days for which a deleted project can be restored; its content is removed after them."""

    api_requests_per_second: Annotated[float, Field(ge=0)] = 50.0
    """Requests of one token or login that a server process answers for a long time; 0 for no limit.

    Requests of workers and attempts are not counted.
    """
    api_burst: Annotated[int, Field(ge=1)] = 1_000
    """Requests of one token or login that it answers at once."""

    idempotency_seconds: Annotated[int, Field(ge=60)] = 86_400
    """Time for which the answer of an `Idempotency-Key` is stored."""

    lease_seconds: Annotated[float, Field(gt=0)] = 60.0
    """Life of a lease after each renewal."""

    renew_seconds: Annotated[float, Field(gt=0)] = 10.0
    """Period of renewals; at most a sixth of the lease."""

    reclaim_seconds: Annotated[float, Field(gt=0)] = 120.0
    """Silence after which an attempt counts as lost, counted only while the server is up.

    At least the lease.
    """

    heartbeat_seconds: Annotated[float, Field(gt=0)] = 5.0
    """Period of workers' heartbeats."""

    worker_offline_seconds: Annotated[float, Field(gt=0)] = 30.0
    """Silence after which a worker is shown as unreachable."""

    assignment_seconds: Annotated[float, Field(gt=0)] = 30.0
    """A job is assigned to a worker anew if the first one did not claim it within this time."""

    sse_streams_per_user: Annotated[int, Field(ge=1)] = 64
    """Live streams of one user.

    A credential with few streams gets another even if the user's other credentials hold all.
    """
    sse_streams_per_credential: Annotated[int, Field(ge=1)] = 16
    """Live streams of one login or token."""
    sse_streams: Annotated[int, Field(ge=1)] = 2_000
    """Live streams of the whole process."""

    @field_validator("broker_url")
    @classmethod
    def _check_broker(cls, value: SecretStr) -> SecretStr:
        return SecretStr(parse_redis_address(value.get_secret_value()))

    @field_validator("worker_broker_url")
    @classmethod
    def _check_worker_broker(cls, value: SecretStr | None) -> SecretStr | None:
        url = value.get_secret_value().strip() if value else ""
        return SecretStr(parse_redis_address(url, is_of_worker=True)) if url else None

    @field_validator("bus_url")
    @classmethod
    def _check_bus(cls, value: SecretStr | None) -> SecretStr | None:
        url = value.get_secret_value().strip() if value else ""
        return SecretStr(parse_redis_address(url, is_bus=True)) if url else None

    @field_validator("database_url")
    @classmethod
    def _check_database(cls, value: SecretStr) -> SecretStr:
        url = value.get_secret_value().strip()
        return SecretStr(parse_database_address(url) if url else "")

    @field_validator("artifacts_url")
    @classmethod
    def _check_artifacts(cls, value: str) -> str:
        return parse_directory_address(value) if value.strip() else ""

    @field_validator("public_url")
    @classmethod
    def _check_public_url(cls, value: str) -> str:
        address = parse_server_address(value) if value.strip() else ""
        first = urlsplit(address).path.split("/")[1:2]
        if RESERVED_SEGMENTS.intersection(first):
            raise ValueError(
                f"has a path that begins with /{first[0]}, as an address of Palestra's own does: "
                "choose another path, such as /palestra"
            )
        return address

    @field_validator("host")
    @classmethod
    def _check_host(cls, value: str) -> str:
        return parse_host(value)

    @field_validator("allowed_hosts")
    @classmethod
    def _check_allowed_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_parse_member(parse_host, member) for member in value if member.strip())

    @field_validator("trusted_proxies")
    @classmethod
    def _check_trusted_proxies(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_parse_member(parse_network, member) for member in value if member.strip())

    @model_validator(mode="after")
    def _lease_outlives_renewals(self) -> Self:
        if self.lease_seconds < 6 * self.renew_seconds:
            raise ValueError(
                f"lease_seconds {self.lease_seconds:g} must be at least six times "
                f"renew_seconds {self.renew_seconds:g}"
            )
        if self.reclaim_seconds < self.lease_seconds:
            raise ValueError(
                f"reclaim_seconds {self.reclaim_seconds:g} must be at least "
                f"lease_seconds {self.lease_seconds:g}"
            )
        return self

    @property
    def database(self) -> str:
        """The database URL, with its default filled in."""
        return (
            self.database_url.get_secret_value()
            or f"sqlite:///{quote(str((self.data_dir / 'palestra.db').resolve()))}"
        )

    @property
    def sqlite_path(self) -> Path | None:
        """The file of an SQLite database; `None` for another database."""
        scheme, _, rest = self.database.partition("://")
        if scheme.split("+", 1)[0] != "sqlite":
            return None
        path = rest.partition("?")[0].removeprefix("/")
        return Path(unquote(path) or "/").absolute()

    @property
    def artifact_dir(self) -> Path:
        """The directory of stored blobs."""
        return Path(self.artifacts_url) if self.artifacts_url else self.data_dir / "blobs"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)

    @property
    def secure_cookies(self) -> bool:
        """Whether browsers reach the server over TLS.

        Cookies then have the attribute `Secure` (`app.api.cookies`).
        """
        return self.public_url.startswith("https://")

    @property
    def public_path(self) -> str:
        """The path of `public_url`, such as `/palestra`; empty where the server is at `/`."""
        return urlsplit(self.public_url).path

    @property
    def proxy_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """The networks of the trusted proxies."""
        return tuple(ip_network(text) for text in self.trusted_proxies)

    @property
    def base_url(self) -> str:
        """The address to print for users.

        If the server listens on every interface, this is an address by which this machine reaches
        the server.
        """
        reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound
        host = format_host(reachable.get(self.host, self.host))
        return self.public_url or f"http://{host}:{self.port}"

    @property
    def host_names(self) -> frozenset[str]:
        """Hosts that a request may name, as its `Host` header has them, without the port."""
        names = {"localhost", "127.0.0.1", "::1", *self.allowed_hosts}
        if self.public_url:
            names.add(urlsplit(self.public_url).hostname or "")
        if self.host not in {"0.0.0.0", "::"}:  # noqa: S104 - compared, not bound
            names.add(self.host)
        return frozenset(map(format_host, names))


def _parse_member(parse: Callable[[str], object], member: str) -> str:
    """Returns a member of a list in its normal form; the message of a fault names the member."""
    try:
        return str(parse(member))
    except AddressError as error:
        # What stands before an @ may be a password.
        raise ValueError(f"{member.rpartition('@')[2]!r} {error}") from None


def is_loopback(host: str) -> bool:
    """Returns whether `host` is an address or name of this machine only."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def load_settings(
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    config: Path | None = None,
) -> Settings:
    """Returns the settings, from `overrides`, else variables, else the file, else defaults.

    Args:
        overrides: Values of the program's options; `None` where an option is not given.
        environ: Variables; `os.environ` by default.
        config: TOML file with the names of `Settings` as top-level keys; `PALESTRA_CONFIG` by
            default.

    Raises:
        SettingsError: If a setting is invalid; the message names the setting, never its value.
    """
    variables = os.environ if environ is None else environ
    path = config or (
        Path(variables[f"{ENV_PREFIX}CONFIG"]) if variables.get(f"{ENV_PREFIX}CONFIG") else None
    )
    values = {**(_from_file(path) if path else {}), **_from_environment(variables)}
    values.update({key: value for key, value in (overrides or {}).items() if value is not None})
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise SettingsError(_sentence(error, overrides or {})) from None


def _from_file(path: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"cannot read the configuration {path}: {error}") from None
    for key in values:
        if key not in Settings.model_fields:
            raise SettingsError(f"{path}: unknown setting {key!r}{_did_you_mean(key, '')}")
    return values


def _from_environment(variables: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for variable, text in variables.items():
        name = variable.removeprefix(ENV_PREFIX)
        key = name.lower()
        if (
            name == variable
            or name in OTHER_VARIABLES
            or (name.startswith(OTHER_PREFIXES) and key not in Settings.model_fields)
        ):
            continue
        if key not in Settings.model_fields or name != name.upper():
            raise SettingsError(f"unknown variable {variable}{_did_you_mean(key, ENV_PREFIX)}")
        values[key] = tuple(text.split(",")) if key in _LISTS else text
    return values


def _did_you_mean(key: str, prefix: str) -> str:
    nearest = difflib.get_close_matches(key, Settings.model_fields, n=1, cutoff=0.5)
    return (
        f"; did you mean {prefix}{nearest[0].upper() if prefix else nearest[0]}?" if nearest else ""
    )


def _sentence(error: ValidationError, options: Collection[str]) -> str:
    first = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    option = f"--{where.replace('_', '-')} or " if where in options else ""
    name = f"{where} ({option}{ENV_PREFIX}{where.upper()}): " if where else ""
    return name + describe_fault(first)
