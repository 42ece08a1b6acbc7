"""The source tree of an earlier version, whose worker must work with the present server."""

import io
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Final

import pytest

from tests.support.process_stack import REPOSITORY

PREVIOUS: Final = "1b3b4e36718c222127c57e259992c39a332c8687"
"""Commit of the version whose workers are supported beside the present ones."""
WITHOUT_HISTORY: Final = "PALESTRA_TEST_WITHOUT_HISTORY"
"""Set to 1 it skips the tests of the previous version where the history lacks its commit."""
_PACKAGES: Final = ("app", "migrations", "palestra", "workers")


def write_previous_version(directory: Path) -> Path:
    """Writes the packages of the previous version into a directory and returns it.

    A history without the commit, as in a shallow clone, fails the test, unless `WITHOUT_HISTORY`
    skips it.
    """
    command = ["git", "-C", str(REPOSITORY), "archive", "--format=tar", PREVIOUS, "--"]
    command += _PACKAGES
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").strip()
        message = (
            f"the previous version (commit {PREVIOUS[:12]}) cannot be read from the history "
            f"({reason}): run `git fetch --unshallow`, or set {WITHOUT_HISTORY}=1 to skip this test"
        )
        if os.environ.get(WITHOUT_HISTORY) == "1":
            pytest.skip(message)
        pytest.fail(message)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(directory, filter="data")
    return directory
