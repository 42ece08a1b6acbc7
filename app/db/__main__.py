"""`python -m app.db upgrade`: brings the database to the schema of this code."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from app.db.engine import DatabaseUrlError
from app.db.migrate import upgrade
from app.db.startup_check import DatabaseStartError
from app.settings import SettingsError, load_settings


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m app.db", description="Administers Palestra's database.", allow_abbrev=False
    )
    parser.add_argument("command", choices=["upgrade"], help="apply the missing migrations")
    parser.add_argument("--config", type=Path, help="TOML file with settings")
    parser.add_argument("--data-dir")
    parser.add_argument("--database-url")
    values = parser.parse_args(arguments)
    try:
        settings = load_settings(
            {"data_dir": values.data_dir, "database_url": values.database_url}, config=values.config
        )
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        version = upgrade(settings.database)
    except (SettingsError, DatabaseUrlError) as error:
        return _fail(str(error), 2)
    except DatabaseStartError as error:
        return _fail(str(error), 1)
    sys.stdout.write(f"database at version {version}\n")
    return 0


def _fail(sentence: str, exit_code: int) -> int:
    sys.stderr.write(f"palestra db: {sentence}\n")
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
