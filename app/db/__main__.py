"""`python -m app.db upgrade | vacuum`: the schema of the database, and the space of its file."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from app.db.migrate import upgrade
from app.db.startup_check import DatabaseStartError
from app.db.vacuum import vacuum
from app.private_files import make_files_private
from app.settings import Settings, SettingsError, load_settings
from palestra.contract.sizes import format_size


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m app.db", description="Administers Palestra's database.", allow_abbrev=False
    )
    parser.add_argument(
        "command",
        choices=["upgrade", "vacuum"],
        help="upgrade applies the missing migrations; vacuum rewrites an SQLite file without the "
        "space of deleted rows, while no server uses it",
    )
    parser.add_argument("--config", type=Path, help="TOML file with settings")
    parser.add_argument("--data-dir")
    parser.add_argument("--database-url")
    values = parser.parse_args(arguments)
    try:
        settings = load_settings(
            {"data_dir": values.data_dir, "database_url": values.database_url}, config=values.config
        )
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        sentence = _vacuum(settings) if values.command == "vacuum" else _upgrade(settings)
    except SettingsError as error:
        return _fail(str(error), 2)
    except DatabaseStartError as error:
        return _fail(str(error), 1)
    sys.stdout.write(f"{sentence}\n")
    return 0


def _upgrade(settings: Settings) -> str:
    return f"database at version {upgrade(settings.database, progress=_report)}"


def _vacuum(settings: Settings) -> str:
    done = vacuum(settings.database)
    return f"database file: {format_size(done.before)} before, {format_size(done.after)} now"


def _report(sentence: str) -> None:
    sys.stderr.write(f"palestra db: {sentence}\n")
    sys.stderr.flush()


def _fail(sentence: str, exit_code: int) -> int:
    sys.stderr.write(f"palestra db: {sentence}\n")
    return exit_code


if __name__ == "__main__":
    make_files_private()
    sys.exit(main())
