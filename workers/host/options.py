"""The command line of a worker, and its errors."""

import argparse
import platform
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NoReturn, cast

from pydantic import TypeAdapter, ValidationError

from palestra.addresses import AddressError, parse_redis_address, parse_server_address
from palestra.contract.names import Name, Title
from palestra.contract.registration import Gpu
from palestra.contract.wording import describe_fault
from workers.ipc.allowed_paths import check_allowed_paths
from workers.ipc.gpus import list_gpus
from workers.ipc.worker_imports import check_imports

USAGE: Final = 2
"""Exit status of a worker with invalid options; a restart does not help."""

BUSY: Final = 75
"""Exit status of a worker that must wait for another worker to end (`EX_TEMPFAIL`).

A later restart helps.
"""

DRAIN_SECONDS: Final = 80.0

_POOL: Final[TypeAdapter[str]] = TypeAdapter(Name)
_TITLE: Final[TypeAdapter[str]] = TypeAdapter(Title)

OnStop = Literal["drain", "keep"]


class UsageError(Exception):
    """The worker's options are invalid; the message is one line that a user can act on."""

    exit_status = USAGE


class BusyError(UsageError):
    """Another worker uses the state directory or the name."""

    exit_status = BUSY


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """The options of a worker's command line."""

    server: str
    token: str = field(repr=False)
    pool: str | None
    """`None` takes the pool of the token, or the worker's present one."""
    slots: int
    gpus: tuple[Gpu, ...]
    state_directory: Path
    name: str
    broker: str | None = field(repr=False)
    on_stop: OnStop
    drain_seconds: float
    imports: tuple[str, ...] = ()
    """Modules that register environments."""
    allowed_paths: tuple[Path, ...] = ()
    """Directories whose files definitions may name."""


def parse_options(arguments: list[str] | None = None) -> WorkerOptions:
    """Returns the options of the command line.

    Raises:
        UsageError: If the value of an option is invalid.
        SystemExit: By argparse, if the command line is malformed.
    """
    found = _parser().parse_args(arguments)
    return WorkerOptions(
        server=_server(found.server),
        token=read_token(found.token_file),
        pool=None if found.pool is None else _check_text(_POOL, found.pool, "--pool"),
        slots=_slots(found.slots),
        gpus=choose_gpus(found.gpus, list_gpus() if found.gpus else ()),
        state_directory=found.state_dir.expanduser().resolve(),
        name=_check_text(_TITLE, found.name, "--name"),
        broker=_broker(found.broker),
        on_stop=cast("OnStop", found.on_stop),
        drain_seconds=found.drain_seconds,
        imports=_imports(found.imports),
        allowed_paths=_allowed_paths(found.allowed_paths),
    )


def read_token(path: Path) -> str:
    """Reads the token from a file that only its owner may read.

    Raises:
        UsageError: If the file is missing, empty or readable by others.
    """
    try:
        mode = path.stat().st_mode
        token = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"cannot read the token file {path}: {getattr(error, 'strerror', None) or 'not ASCII'}"
        ) from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UsageError(
            f"other users can read the token file {path}: run `chmod 600 {path}` and start again"
        )
    if not token or any(character.isspace() for character in token):
        raise UsageError(f"the token file {path} must hold one token and nothing else")
    return token


def choose_gpus(text: str, present: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """Parses `--gpus`: comma-separated indices, or `all`.

    Raises:
        UsageError: If this machine does not have one of them.
    """
    if text == "all":
        return present or _no_gpus()
    try:
        wanted = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise UsageError(f"--gpus must be indices such as 0,1 or `all`, not {text!r}") from None
    if wanted and not present:
        _no_gpus()
    known = {gpu.index: gpu for gpu in present}
    missing = [index for index in wanted if index not in known]
    if missing:
        raise UsageError(
            f"--gpus names GPU {missing[0]}, but this machine has "
            f"{', '.join(map(str, sorted(known)))}"
        )
    if len(set(wanted)) != len(wanted):
        raise UsageError("--gpus names a GPU twice")
    return tuple(known[index] for index in wanted)


def _no_gpus() -> NoReturn:
    raise UsageError(
        "--gpus needs an NVIDIA driver, and nvidia-smi does not answer here: install the driver, "
        "or leave --gpus out"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="palestra worker", description="Offers this machine's slots to a Palestra server."
    )
    parser.add_argument(
        "--server",
        required=True,
        help="address of the server, for example https://palestra.example.org",
    )
    parser.add_argument(
        "--token-file",
        type=Path,
        required=True,
        help=(
            "file with an enrolment token of a pool (palestra pools token); readable only by you"
        ),
    )
    parser.add_argument("--pool", default=None, help="pool to join (default: the one of the token)")
    parser.add_argument(
        "--slots", type=int, default=1, help="attempts at the same time (default: %(default)s)"
    )
    parser.add_argument(
        "--gpus", default="", help="GPUs to offer, such as 0,1, or `all`; none by default"
    )
    parser.add_argument(
        "--state-dir",
        type=Path,
        default=Path("~/.palestra-worker"),
        help="attempts, spools, locks (default: %(default)s)",
    )
    parser.add_argument(
        "--name",
        default=platform.node()[:64] or "worker",
        help="name of this worker (default: the host's)",
    )
    parser.add_argument(
        "--broker", default=None, help="broker address, if another than the server tells"
    )
    parser.add_argument(
        "--on-stop",
        choices=("drain", "keep"),
        default="drain",
        help="what SIGTERM does with trainings: save and requeue them, or leave them",
    )
    parser.add_argument(
        "--drain-seconds",
        type=float,
        default=DRAIN_SECONDS,
        help="longest wait for saving trainings (default: %(default)s)",
    )
    parser.add_argument(
        "--import",
        dest="imports",
        metavar="MODULE",
        action="append",
        default=[],
        help="module that registers environments when it is imported; may be given several times",
    )
    parser.add_argument(
        "--allow-path",
        dest="allowed_paths",
        metavar="DIR",
        action="append",
        default=[],
        help=(
            "directory whose files definitions may name in env.kwargs; may be given several times"
        ),
    )
    return parser


def _allowed_paths(texts: list[str]) -> tuple[Path, ...]:
    try:
        return check_allowed_paths(texts)
    except ValueError as error:
        raise UsageError(f"--allow-path: {error}") from None


def _imports(names: list[str]) -> tuple[str, ...]:
    try:
        return check_imports(names)
    except ValueError as error:
        raise UsageError(f"--import: {error}") from None


def _server(url: str) -> str:
    try:
        return parse_server_address(url)
    except AddressError as error:
        raise UsageError(f"--server {error}") from None


def _broker(url: str | None) -> str | None:
    try:
        return None if url is None else parse_redis_address(url, is_of_worker=True)
    except AddressError as error:
        raise UsageError(f"--broker {error}") from None


def _slots(count: int) -> int:
    if not 1 <= count <= 4_096:
        raise UsageError(f"--slots must be 1 to 4096, not {count}")
    return count


def _check_text(adapter: TypeAdapter[str], text: str, option: str) -> str:
    try:
        return adapter.validate_python(text)
    except ValidationError as error:
        raise UsageError(f"{option}: {describe_fault(error.errors()[0])}") from None
