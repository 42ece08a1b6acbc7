"""Limits the memory that the C library's allocator keeps for threads."""

import ctypes
import os
import platform
from typing import Final

ARENAS: Final = 2
"""Arenas of all threads together, one for each processor of a small machine."""
_M_ARENA_MAX: Final = -8
"""Number of the option in `malloc.h` of glibc."""


def limit_arenas() -> bool:
    """Lets all threads allocate from a few arenas of glibc; call it before they start.

    By default each thread that decodes or encodes curves has an arena of its own, up to eight for
    each processor, and each keeps the largest columns that it ever held. A value that the operator
    has set in `MALLOC_ARENA_MAX` is left alone.

    Returns:
        Whether the limit was set; false with other C libraries.
    """
    if "MALLOC_ARENA_MAX" in os.environ or platform.libc_ver()[0] != "glibc":
        return False
    return bool(ctypes.CDLL(None).mallopt(_M_ARENA_MAX, ARENAS) == 1)
