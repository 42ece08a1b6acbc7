"""`python -m app.daemons`: dispatcher, reaper, compactor and remover as one process.

For installations with several servers.
"""

import argparse
import asyncio
import contextlib
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import structlog

from app.bus import make_bus, publish_all
from app.cancellation import cancel_all
from app.daemons.main import run
from app.db.engine import BACKGROUND_STATEMENT_SECONDS, Database
from app.db.startup_check import DatabaseStartError, check_database
from app.logging import configure_logging
from app.private_files import make_files_private
from app.services.workers.broker_users import BrokerUsers
from app.settings import Settings, SettingsError, load_settings

_log = structlog.get_logger("palestra.daemons")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the daemons until SIGTERM or SIGINT; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m app.daemons",
        description="Runs dispatcher, reaper, compactor and remover.",
        allow_abbrev=False,
    )
    parser.add_argument("--config", type=Path, help="TOML file with settings")
    for name in ("data-dir", "database-url", "broker-url", "log-level", "log-format"):
        parser.add_argument(f"--{name}")
    values = vars(parser.parse_args(arguments))
    config = values.pop("config")
    try:
        settings = load_settings(values, config=config)
        configure_logging(settings.log_level, settings.log_format)
        asyncio.run(_serve(settings))
    except (SettingsError, DatabaseStartError) as error:
        sys.stderr.write(f"palestra daemons: {error}\n")
        return 2 if isinstance(error, SettingsError) else 1
    return 0


async def _serve(settings: Settings) -> None:
    await check_database(settings.database)
    database = Database(settings.database, statement_seconds=BACKGROUND_STATEMENT_SECONDS)
    bus = make_bus(settings)
    database.listeners.append(partial(publish_all, bus))
    broker_users = BrokerUsers(settings)
    background = {
        asyncio.create_task(part) for part in (bus.run(), broker_users.run(database, bus))
    }
    work = asyncio.create_task(run(database, settings, bus, broker_users))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, work.cancel)
    _log.info("daemons.ready")
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await work
    finally:
        await cancel_all(background)
        await database.dispose()


if __name__ == "__main__":
    make_files_private()
    sys.exit(main())
