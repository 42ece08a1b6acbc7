"""The log of a worker's process on a full disk."""

import os
import subprocess
import sys

PROGRAM = """
from workers.ipc import json_log
json_log.configure()
json_log.get_logger().warning("ending.not_written")
print("went on", flush=True)
"""


def test_a_process_whose_log_is_on_a_full_disk_goes_on() -> None:
    """Regression: such a supervisor ended without a report."""
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=full, check=False
        )
    finally:
        os.close(full)
    assert done.stdout == b"went on\n"
