"""CPU, memory and GPU usage of the trainer's processes.

For the `system/<name>` curves and for the memory limit.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import psutil

from workers.ipc.gpus import parse_number, query_gpus

_MIB: Final = 1024 * 1024
_GPU_FIELDS: Final[Mapping[str, str]] = {
    "utilization.gpu": "util_percent",
    "memory.used": "memory_mib",
    "temperature.gpu": "temperature_celsius",
    "power.draw": "power_watt",
}


class ResourceSampler:
    """Measures the processes of an attempt; CPU usage is averaged since the last sample.

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
        self._host = _host_seconds()

    def sample(self, pids: Iterable[int]) -> dict[str, float]:
        """Returns the current measurements by name."""
        now, cpu, resident, threads = time.monotonic(), dict[int, float](), 0, 0
        for pid in pids:
            usage = _usage(pid)
            if usage is not None:
                cpu[pid], memory, thread_count = usage
                resident += memory
                threads += thread_count
        used = sum(seconds - self._cpu.get(pid, 0.0) for pid, seconds in cpu.items())
        share = 100.0 * used / max(now - self._at, 1e-3)
        self._cpu, self._at = cpu, now
        usage_by_name = {
            "cpu_percent": share,
            "memory_mib": resident / _MIB,
            "processes": float(len(cpu)),
            "threads": float(threads),
        }
        return usage_by_name | self._measure_host() | self._measure_gpus()

    def _measure_host(self) -> dict[str, float]:
        before, self._host = self._host, _host_seconds()
        busy, total = (now - then for now, then in zip(self._host, before, strict=True))
        memory = psutil.virtual_memory()
        return {
            "host_cpu_percent": 100.0 * busy / max(total, 1e-3),
            "host_memory_percent": 100.0 * (1 - memory.available / memory.total),
        }

    def _measure_gpus(self) -> dict[str, float]:
        values: dict[str, float] = {}
        if self._gpus:
            for row in self._query(",".join(("index", *_GPU_FIELDS))):
                if row and row[0].isdigit() and int(row[0]) in self._gpus:
                    values |= _gpu_values(int(row[0]), row[1:])
        return values


def resident_mib(pids: Iterable[int]) -> float:
    """Returns the resident memory of processes in MiB, without shared pages."""
    return sum(usage[1] for pid in pids if (usage := _usage(pid)) is not None) / _MIB


def _gpu_values(index: int, cells: list[str]) -> dict[str, float]:
    named = zip(_GPU_FIELDS.values(), cells, strict=False)
    return {
        f"gpu{index}_{name}": value
        for name, cell in named
        if (value := parse_number(cell)) is not None
    }


def _usage(pid: int) -> tuple[float, int, int] | None:
    """CPU seconds, bytes of memory and threads of a process; `None` if it ended."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            cpu, memory = process.cpu_times(), process.memory_info()
            return cpu.user + cpu.system, memory.rss - memory.shared, process.num_threads()
    except psutil.Error:
        return None


def _host_seconds() -> tuple[float, float]:
    """Busy and total CPU seconds of the machine since boot."""
    times = psutil.cpu_times()
    # `user` and `nice` include the time of guests already.
    total = sum(times) - times.guest - times.guest_nice
    return total - times.idle - times.iowait, total
