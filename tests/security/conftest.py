"""The application in the test's process, once per kind of database, and a server to attack."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.api.conftest import shared as shared
from tests.security.target import Target


@pytest.fixture(scope="session")
def target(migrated_sqlite: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """The server process that the attacks of this xdist worker share."""
    with Target(tmp_path_factory.mktemp("target"), migrated_sqlite) as started:
        yield started
