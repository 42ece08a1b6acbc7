"""The data directory may have any name, and other users of the machine read nothing in it."""

import os
import stat
import subprocess
from pathlib import Path

import pytest
from asgi_lifespan import LifespanManager

from app.db.migrate import upgrade
from app.db.startup_check import DatabaseStartError, check_database
from app.main import create_app
from app.private_files import tighten_files
from app.settings import Settings
from palestra.python_command import build_python_command
from tests.app.test_cli_corpus import environment
from tests.support.waiting import PATIENCE_SECONDS

NAMES = ("a?b", "a?mode=memory", "%41", "100%", "a#b", "a b", "a&b=c;d", "ä", "+", "'\"")


def _read_mode(place: Path) -> int:
    return stat.S_IMODE(place.stat().st_mode)


@pytest.mark.parametrize("name", NAMES)
async def test_database_and_blobs_are_in_the_directory_whatever_its_name(
    tmp_path: Path, name: str
) -> None:
    """Regression: with `?` the database was beside the directory, shared by all such names."""
    directory = tmp_path / name
    directory.mkdir()
    settings = Settings(data_dir=directory, daemons=False)
    upgrade(settings.database)
    await check_database(settings.database)
    assert settings.sqlite_path == directory / "palestra.db"
    assert {file.name for file in directory.iterdir()} >= {"palestra.db"}
    assert {file.name for file in tmp_path.iterdir()} == {name}
    app = create_app(settings)
    async with LifespanManager(app):
        assert app.state.store.path("a" * 32).is_relative_to(directory / "blobs")


@pytest.mark.parametrize("name", NAMES)
def test_a_directory_of_blobs_is_a_path_or_a_quoted_address(tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    assert Settings(artifacts_url=str(place)).artifact_dir == place
    assert Settings(artifacts_url=place.as_uri()).artifact_dir == place


async def test_a_database_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "palestra.db"
    with pytest.raises(DatabaseStartError, match=f"the database {missing} cannot be used: "):
        await check_database(f"sqlite:///{missing}")


def test_a_new_database_is_readable_by_its_user_only(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    subprocess.run(
        build_python_command("app.db", "upgrade", "--data-dir", str(tmp_path)),
        env=environment(tmp_path),
        check=True,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        umask=0o022,
    )
    assert _read_mode(tmp_path / "palestra.db") == 0o600


def test_files_of_earlier_versions_lose_the_rights_of_others(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    for name, mode in (("palestra.db", 0o644), ("palestra.db-wal", 0o664), ("other", 0o644)):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(mode)
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs").chmod(0o755)
    expected = [tmp_path / name for name in ("palestra.db", "palestra.db-wal", "blobs")]
    assert tighten_files(settings) == expected
    assert [_read_mode(place) for place in expected] == [0o600, 0o600, 0o700]
    assert _read_mode(tmp_path / "other") == 0o644
    assert tighten_files(settings) == []
    assert os.access(tmp_path / "palestra.db", os.W_OK)
