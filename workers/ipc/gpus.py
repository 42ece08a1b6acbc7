"""Queries the GPUs of this machine with nvidia-smi."""

import subprocess
from collections.abc import Callable
from typing import Final

from palestra.contract.registration import Gpu

_NVIDIA_SMI: Final = "nvidia-smi"


def query_gpus(fields: str) -> list[list[str]]:
    """Returns nvidia-smi's fields as one row per GPU; empty without nvidia-smi."""
    command = [_NVIDIA_SMI, f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(  # noqa: S603 - a fixed list
            command, capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    if done.returncode != 0:
        return []
    return [
        [cell.strip() for cell in line.split(",")]
        for line in done.stdout.splitlines()
        if line.strip()
    ]


def list_gpus(query: Callable[[str], list[list[str]]] = query_gpus) -> tuple[Gpu, ...]:
    """Returns the GPUs of this machine."""
    rows = [
        row for row in query("index,name,uuid,memory.total") if len(row) == 4 and row[0].isdigit()
    ]
    return tuple(
        Gpu(index=int(row[0]), name=row[1], uuid=row[2], memory_mib=int(parse_number(row[3]) or 0))
        for row in rows
    )


def parse_number(text: str) -> float | None:
    """Parses a field; `None` if it is not a number, as for values that a GPU does not support."""
    try:
        return float(text)
    except ValueError:
        return None
