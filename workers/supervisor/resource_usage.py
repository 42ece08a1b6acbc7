"""What the trainer's processes and its GPUs use: numbers for `system/<name>` curves and for the
memory limit.
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from workers.ipc.gpus import number_or_none, query_gpus

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_MIB: Final = 1024 * 1024
_PROC: Final = Path("/proc")
_USER_FIELD: Final = 11
_SYSTEM_FIELD: Final = 12
_THREADS_FIELD: Final = 17
_GPU_FIELDS: Final[Mapping[str, str]] = {
    "utilization.gpu": "util_percent",
    "memory.used": "memory_mib",
    "temperature.gpu": "temperature_celsius",
    "power.draw": "power_watt",
}


class ResourceSampler:
    """Measures an attempt's processes; shares of the CPU are since the last sample.

    Args:
        gpus: Indices of the attempt's GPUs.
        query: Runs nvidia-smi; for tests.
    """

    def __init__(
        self, gpus: tuple[int, ...] = (), *, query: Callable[[str], list[list[str]]] | None = None
    ) -> None:
        self._gpus = gpus
        self._query = query or query_gpus
        self._cpu: dict[int, float] = {}
        self._at = time.monotonic()
        self._host = _host_ticks()

    def sample(self, pids: Iterable[int]) -> dict[str, float]:
        """Returns the numbers of now."""
        now, cpu, resident, threads = time.monotonic(), dict[int, float](), 0, 0
        for pid in pids:
            usage = _usage(pid)
            if usage is not None:
                cpu[pid], own_memory, own_threads = usage
                resident += own_memory
                threads += own_threads
        used = sum(seconds - self._cpu.get(pid, 0.0) for pid, seconds in cpu.items())
        share = 100.0 * used / max(now - self._at, 1e-3)
        self._cpu, self._at = cpu, now
        own = {
            "cpu_percent": share,
            "memory_mib": resident / _MIB,
            "processes": float(len(cpu)),
            "threads": float(threads),
        }
        return own | self._of_host() | self._of_gpus()

    def _of_host(self) -> dict[str, float]:
        before, self._host = self._host, _host_ticks()
        busy, total = (now - then for now, then in zip(self._host, before, strict=True))
        memory = dict(line.split(":", 1) for line in (_PROC / "meminfo").read_text().splitlines())
        whole, free = (float(memory[name].split()[0]) for name in ("MemTotal", "MemAvailable"))
        return {
            "host_cpu_percent": 100.0 * busy / max(total, 1),
            "host_memory_percent": 100.0 * (1 - free / whole),
        }

    def _of_gpus(self) -> dict[str, float]:
        values: dict[str, float] = {}
        if self._gpus:
            for row in self._query(",".join(("index", *_GPU_FIELDS))):
                if row and row[0].isdigit() and int(row[0]) in self._gpus:
                    values |= _gpu_values(int(row[0]), row[1:])
        return values


def resident_mib(pids: Iterable[int]) -> float:
    """Returns the memory of processes in MiB, without what they share with files."""
    return sum(usage[1] for pid in pids if (usage := _usage(pid)) is not None) / _MIB


def _gpu_values(index: int, cells: list[str]) -> dict[str, float]:
    named = zip(_GPU_FIELDS.values(), cells, strict=False)
    return {
        f"gpu{index}_{name}": value
        for name, cell in named
        if (value := number_or_none(cell)) is not None
    }


def _usage(pid: int) -> tuple[float, int, int] | None:
    """CPU seconds, bytes of memory and threads of a process."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
        pages = (_PROC / str(pid) / "statm").read_text().split()
    except OSError:
        return None
    fields = stat[stat.rindex(")") + 2 :].split()
    seconds = (int(fields[_USER_FIELD]) + int(fields[_SYSTEM_FIELD])) / _TICKS
    return seconds, (int(pages[1]) - int(pages[2])) * _PAGE, int(fields[_THREADS_FIELD])


def _host_ticks() -> tuple[int, int]:
    numbers = [
        int(number) for number in (_PROC / "stat").read_text().split("\n", 1)[0].split()[1:9]
    ]
    idle = numbers[3] + numbers[4]
    return sum(numbers) - idle, sum(numbers)
