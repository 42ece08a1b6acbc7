"""The source tree of an earlier version, whose worker must work with the present server."""

import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.process_stack import REPOSITORY

PREVIOUS: Final = "f5ae033c04ee189e6cd03dd6278d8d000f6b2fde"
"""Commit of the version whose workers are supported beside the present ones."""
WITHOUT_HISTORY: Final = "PALESTRA_TEST_WITHOUT_HISTORY"
"""Set to 1 it skips the tests of the previous version where the history lacks its commit."""
_PACKAGES: Final = ("app", "migrations", "palestra", "workers")


def write_previous_version(directory: Path, *further: str) -> Path:
    """Writes the packages of the previous version into a directory and returns it.

    `further` names other directories of the repository that are written too.

    A history without the commit, as in a shallow clone, fails the test, unless `WITHOUT_HISTORY`
    skips it.
    """
    command = ["git", "-C", str(REPOSITORY), "archive", "--format=tar", PREVIOUS, "--"]
    command += [*_PACKAGES, *further]
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


def fill_database(tree: Path, url: str, directory: Path, runs: int) -> dict[str, Any]:
    """Makes a database by the previous version's code, with runs, live attempts and logins.

    Args:
        tree: What `write_previous_version` wrote, with `tests`.
        url: An empty database.
        directory: Data directory of that version's server.
        runs: Number of runs beside a few of the sample rows.

    Returns:
        What `previous_rows.py` prints: secrets, IDs and the number of rows of each table.
    """
    script = Path(__file__).with_name("previous_rows.py")
    done = subprocess.run(
        [sys.executable, str(script), url, str(directory), str(runs)],
        capture_output=True,
        check=False,
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return facts
