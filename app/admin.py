"""Administration on the machine that holds the database.

`python -m app.admin bootstrap | token | login-link | audit-verify | prepare | rotate-device-keys`

Each command prints one JSON object. There is no default password: the first login happens through a
one-time link.
"""

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from app.address import find_running_address
from app.db.engine import Database, Session
from app.db.migrate import upgrade
from app.db.startup_check import DatabaseStartError, check_database
from app.domain.audit_chain import ChainPlace
from app.domain.errors import DomainError, InvalidError, UnavailableError
from app.domain.principal import Principal
from app.logging import scrub_text
from app.private_files import make_files_private
from app.services.access import break_glass, logins, members, principals, tokens
from app.services.access.device_keys import FILE, DeviceKeys
from app.services.audit import audit_log
from app.services.audit.audit_log import RequestOrigin
from app.services.audit.verification import verify
from app.services.pools import DEFAULT
from app.services.workers import enrolment_tokens, pools
from app.settings import Settings, SettingsError, load_settings
from palestra.contract.access import TokenRequest, TokenView
from palestra.contract.documents import encode_canonical_json
from palestra.contract.names import Scope, Title
from palestra.contract.pools import EnrolmentTokenRequest, EnrolmentTokenView
from palestra.contract.problems import explain

_NEVER: Final = 0
_TOKEN_DAYS: Final = 90
_NOTED: Final = re.compile(r"(?P<id>[1-9][0-9]{0,17}):(?P<hash>[0-9a-f]{64})")
_CONSOLE: Final = "console"
"""Address of these commands in the audit log."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and prints its answer; returns the exit code."""
    values = _read_arguments(arguments)
    try:
        settings = load_settings(
            {"data_dir": values.data_dir, "database_url": values.database_url}, config=values.config
        )
        if values.command is _token:
            _token_request(values.name, values.scopes, values.days)
        if values.command is _prepare:
            settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            upgrade(settings.database)
        answer = asyncio.run(_run(settings, values))
    except (SettingsError, DatabaseStartError, DomainError) as error:
        sys.stderr.write(f"palestra admin: {scrub_text(str(error))}\n")
        return 2 if isinstance(error, SettingsError) else 1
    except ValidationError as error:
        first = explain(error, TokenRequest)[0]
        sys.stderr.write(f"palestra admin: {first.pointer.removeprefix('/')} {first.message}\n")
        return 2
    json.dump(answer, sys.stdout)
    sys.stdout.write("\n")
    if answer.get("fault") is not None:
        sys.stderr.write(f"palestra admin: the audit log is broken: {answer['fault']['message']}\n")
        return 1
    return 0


async def _run(settings: Settings, values: argparse.Namespace) -> dict[str, Any]:
    await check_database(settings.database)
    database = Database(settings.database)
    answer: dict[str, Any]
    try:
        if values.command is _audit_verify:
            answer = await _audit_verify(settings, database, values)
            return answer
        async with database.write() as session:
            audit_log.set_origin(session, RequestOrigin(address=_CONSOLE))
            answer = await values.command(session, settings, values)
            return answer
    finally:
        await database.dispose()


async def _bootstrap(
    session: Session, settings: Settings, values: argparse.Namespace
) -> dict[str, Any]:
    first = await members.ensure_project_and_admin(
        session, _title(values.project, "--project"), _title(values.user, "--user")
    )
    answer: dict[str, Any] = {"project_id": first.project_id, "user_id": first.user_id}
    if await logins.has_logged_in(session, first.user_id):
        return {**answer, "setup_needed": False}
    return {**answer, "setup_needed": True, **await _new_link(session, settings, first.user_id)}


async def _login_link(
    session: Session, settings: Settings, values: argparse.Namespace
) -> dict[str, Any]:
    if find_running_address(settings) is None:
        place = settings.data_dir.resolve()
        sys.stderr.write(
            f"palestra admin: no server runs on {place}: start it before you open the "
            "link, or name another with --data-dir\n"
        )
    if values.user is None:
        if values.enable:
            raise InvalidError("user_needed", "--enable needs --user NAME.")
        user = (await members.ensure_project_and_admin(session)).user_id
    else:
        user = await break_glass.find_person(session, values.user, enable=values.enable)
    code = await break_glass.make_link(session, user, settings.link_seconds)
    return _link(settings, code)


async def _new_link(session: Session, settings: Settings, user_id: str) -> dict[str, Any]:
    return _link(settings, await logins.make_link(session, user_id, settings.link_seconds))


def _link(settings: Settings, code: str) -> dict[str, Any]:
    address = find_running_address(settings) or settings.base_url
    # The code is in the fragment, which browsers send to no server and write into no log.
    return {
        "url": f"{address}/login#code={code}",
        "code": code,
        "expires_in_seconds": settings.link_seconds,
    }


async def _audit_verify(
    settings: Settings, database: Database, values: argparse.Namespace
) -> dict[str, Any]:
    url = database.engine.url.render_as_string(hide_password=True)
    verification = await verify(database, values.noted)
    return {
        "database": str(settings.sqlite_path or url),
        **verification.model_dump(mode="json"),
    }


def _noted(text: str) -> ChainPlace:
    match = _NOTED.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(
            "give last_id and last_hash of an earlier verification, as ID:HASH"
        )
    return ChainPlace(int(match["id"]), match["hash"])


def _title(name: str | None, option: str) -> str | None:
    try:
        return None if name is None else TypeAdapter(Title).validate_python(name)
    except ValidationError:
        raise InvalidError(
            "invalid_name", f"{option} must be one visible line of 1 to 64 characters."
        ) from None


async def _prepare(
    session: Session, settings: Settings, values: argparse.Namespace
) -> dict[str, Any]:
    """Runs the steps of an embedded start in one process, since each process imports the server."""
    first = await members.ensure_project_and_admin(session)
    await pools.provide(session, values.pool, first.project_id, worker=values.worker)
    made: dict[str, str | None] = {}
    for name, scopes, file in values.token:
        held = await _read_caller(session, Path(file))
        enrols = _enrols_workers(scopes)
        good_pool = not enrols or (held is not None and held.pool == values.pool)
        if held is not None and held.scopes >= set(scopes.split(",")) and good_pool:
            made[name] = None
        elif enrols:
            made[name] = (await _issue_enrolment(session, name, values.pool, _NEVER)).secret
        else:
            made[name] = (await _issue(session, _token_request(name, scopes, _TOKEN_DAYS))).secret
    return {**await _new_link(session, settings, first.user_id), "tokens": made}


async def _read_caller(session: Session, file: Path) -> Principal | None:
    """Returns the caller whose valid token is in a file."""
    try:
        secret = await asyncio.to_thread(file.read_text, "utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return await principals.find_by_token(session, secret.strip())


async def _token(
    session: Session, _settings: Settings, values: argparse.Namespace
) -> dict[str, Any]:
    if _enrols_workers(values.scopes):
        await members.ensure_project_and_admin(session)
        token = await _issue_enrolment(session, values.name, values.pool, values.days)
        return token.model_dump(mode="json")
    return (
        await _issue(session, _token_request(values.name, values.scopes, values.days))
    ).model_dump(mode="json")


async def _rotate_device_keys(
    _session: Session, settings: Settings, _values: argparse.Namespace
) -> dict[str, Any]:
    try:
        DeviceKeys(settings.data_dir).rotate()
    except OSError as error:
        raise UnavailableError(
            "device_keys",
            f"{settings.data_dir / FILE} cannot be replaced: {error.strerror}. Run this as the "
            "server's user, with its --data-dir.",
        ) from None
    return {"file": str(settings.data_dir / FILE)}


async def _issue(session: Session, request: TokenRequest) -> TokenView:
    """Makes a token that covers all projects of the first administrator."""
    first = await members.ensure_project_and_admin(session)
    return await tokens.issue_token(session, None, first.user_id, request)


def _enrols_workers(scopes: str) -> bool:
    """Returns whether a new token enrols workers: `worker` is then its only scope.

    Raises:
        InvalidError: `worker_alone`.
    """
    wanted = set(scopes.split(","))
    if Scope.WORKER in wanted and len(wanted) > 1:
        raise InvalidError(
            "worker_alone",
            "--scopes: a token of the scope worker belongs to a pool and has no other scope. Make "
            "a second token for the other scopes.",
        )
    return Scope.WORKER in wanted


async def _issue_enrolment(
    session: Session, name: str, pool: str, days: int | None
) -> EnrolmentTokenView:
    request = EnrolmentTokenRequest.model_validate_json(
        encode_canonical_json({"name": name, "expires_in_days": None if days == _NEVER else days})
    )
    return await enrolment_tokens.issue(session, pool, request)


def _token_request(name: str, scopes: str, days: int) -> TokenRequest:
    life = None if days == _NEVER else days
    return TokenRequest.model_validate_json(
        encode_canonical_json({"name": name, "scopes": scopes.split(","), "expires_in_days": life})
    )


def _read_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m app.admin",
        description="Administers a Palestra database.",
        allow_abbrev=False,
    )
    parser.add_argument("--config", type=Path, help="TOML file with settings")
    parser.add_argument("--data-dir")
    parser.add_argument("--database-url")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    bootstrap = commands.add_parser(
        "bootstrap",
        help="make a project and a server administrator; prints a setup link until one was used",
    )
    bootstrap.add_argument(
        "--project", help="name of the project; the first one, or `default`, by default"
    )
    bootstrap.add_argument(
        "--user", help="name of the administrator; the first one, or `admin`, by default"
    )
    bootstrap.set_defaults(command=_bootstrap)
    token = commands.add_parser(
        "token",
        help="make an API token of the first administrator, or an enrolment token of a pool",
    )
    token.add_argument("--name", required=True)
    token.add_argument(
        "--scopes", required=True, help="comma-separated: read, submit, admin, worker"
    )
    token.add_argument(
        "--pool",
        default=DEFAULT,
        help="pool of a token of the scope worker, which enrols workers in it "
        "(default: %(default)s)",
    )
    token.add_argument(
        "--days", type=int, default=_TOKEN_DAYS, help="life in days; 0 never expires"
    )
    token.set_defaults(command=_token)
    link = commands.add_parser(
        "login-link",
        help="make a one-time login link of the first administrator, or of another person",
    )
    link.add_argument("--user", help="name of the person; the first administrator by default")
    link.add_argument(
        "--enable",
        action="store_true",
        help="enable the administrator of the server that --user names, if disabled",
    )
    link.set_defaults(command=_login_link)
    rotate = commands.add_parser(
        "rotate-device-keys",
        help="sign the cookies of known browsers with a new key; the second time, older ones end",
    )
    rotate.set_defaults(command=_rotate_device_keys)
    verification = commands.add_parser("audit-verify", help="verify the chain of the audit log")
    verification.add_argument(
        "--noted",
        type=_noted,
        metavar="ID:HASH",
        help="last_id and last_hash of an earlier verification",
    )
    verification.set_defaults(command=_audit_verify)
    prepare = commands.add_parser(
        "prepare", help="run all steps before a start: upgrade, first project, tokens, login link"
    )
    prepare.add_argument(
        "--token",
        nargs=3,
        action="append",
        default=[],
        metavar=("NAME", "SCOPES", "FILE"),
        help="kept if FILE holds it",
    )
    prepare.add_argument(
        "--pool", default=DEFAULT, help="pool of the worker (default: %(default)s)"
    )
    prepare.add_argument("--worker", help="name of the worker, which is moved to the pool")
    prepare.set_defaults(command=_prepare)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    make_files_private()
    sys.exit(main())
