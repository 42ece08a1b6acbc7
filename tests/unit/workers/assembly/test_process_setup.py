"""Process-wide settings of a trainer."""

import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource
import numpy as np
from palestra.contract.job_options import Resources
from workers.assembly.process_setup import prepare_process

prepare_process(Resources(), 0)


def faults_of(rounds):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(rounds):
        held = [np.ones(2_000_000, np.float32) for _ in range(4)]
        del held
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


faults_of(3)
print(faults_of(10))
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc",
    reason="another C library keeps what is freed by rules of its own",
)
def test_memory_freed_by_an_update_is_reused_without_page_faults() -> None:
    command = [sys.executable, "-c", FAULTS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100, "8 MB are 1,953 pages, four times ten of them 78,000"
