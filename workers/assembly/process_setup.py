"""Settings of the process that make a run repeatable."""

import contextlib
import ctypes
import os
from typing import Final

import torch

from palestra.contract.job_options import Resources
from workers.core.rng import seed_global

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
"""Parameters of glibc's `mallopt`."""
_MAPPED_BYTES: Final = 32 << 20
"""Allocation size from which freed memory returns to the system; the maximum of glibc."""
_KEPT_BYTES: Final = 128 << 20
"""Most freed memory that is kept."""


def prepare_process(resources: Resources, seed: int) -> str:
    """Sets threads, memory, arithmetic, deterministic algorithms and the global seeds.

    Returns the torch device to train on.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    device = "cuda" if resources.gpus and torch.cuda.is_available() else "cpu"
    torch.set_num_threads(resources.cpu_threads)
    # Adam's moments of parameters whose gradients stay zero decay to denormal numbers, which
    # make arithmetic a hundred times slower.
    torch.set_flush_denormal(True)
    # `use_deterministic_algorithms` would import the compiler, which takes as long as the rest of
    # torch: see update_runner.py.
    torch.set_deterministic_debug_mode("error" if device == "cpu" else "warn")
    torch.backends.cudnn.benchmark = False
    _keep_freed_memory()
    seed_global(seed)
    return device


def _keep_freed_memory() -> None:
    """Makes the C allocator keep freed memory of large tensors for the next update.

    Otherwise clearing new pages takes a tenth of an update's time.
    """
    # Other C libraries than glibc have no `mallopt`.
    with contextlib.suppress(AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _MAPPED_BYTES)
        library.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
