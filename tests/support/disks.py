"""Small real disks, which tests fill up."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mount_small_disk(directory: Path, kib: int) -> Iterator[Path]:
    """Mounts a tmpfs of `kib` KiB at `directory`.

    Skips the test if this account may not mount.
    """
    directory.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(directory)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"needs to mount a tmpfs, which this account may not: {mounted.stderr.strip()}")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], capture_output=True, check=True)


def fill(directory: Path, *, leave: int = 0) -> Path:
    """Fills a small disk until `leave` bytes are free.

    Returns the path of the file that fills it; removing the file frees the space.
    """
    path = directory / "ballast"
    with path.open("ab") as file:
        while (free := _get_free_bytes(directory) - leave) > 0:
            try:
                file.write(bytes(min(free, 2**16)))
                file.flush()
            except OSError:
                break
    return path


def _get_free_bytes(directory: Path) -> int:
    disk = os.statvfs(directory)
    return disk.f_bavail * disk.f_frsize


def may_mount() -> bool:
    """Returns whether this account may mount a tmpfs."""
    with tempfile.TemporaryDirectory() as directory:
        command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", directory]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            return False
        subprocess.run(["umount", "--lazy", directory], capture_output=True, check=True)
        return True
