"""Prints one line per figure with median and spread, and the machine it was measured on."""

import os
import platform
import statistics
from collections.abc import Sequence
from pathlib import Path


def describe_machine() -> str:
    """Returns the processor, the number of cores that this process may use, and the interpreter."""
    model = platform.processor() or platform.machine()
    try:
        with Path("/proc/cpuinfo").open() as lines:
            model = next(
                line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
            )
    except (OSError, StopIteration):
        pass
    return f"{len(os.sched_getaffinity(0))} cores of {model}, Python {platform.python_version()}"


def show(
    name: str, values: Sequence[float], unit: str, bound: float | None = None, at: float = 0.5
) -> bool:
    """Prints one figure and returns whether its quantile `at` is below `bound`.

    Args:
        name: What was measured.
        values: One value per repetition.
        unit: Unit of the values.
        bound: Upper bound on the quantile, or `None` for a figure without one.
        at: The quantile in (0, 1) to which `bound` applies.
    """
    ordered = sorted(values)
    quantile = find_quantile(ordered, at)
    comparison = (
        "" if bound is None else ("  ok" if quantile < bound else f"  OVER {bound:g} {unit}")
    )
    print(
        f"{name:<44} p{round(at * 100):<3}{quantile:10.3f} {unit:<4}  min "
        f"{ordered[0]:.3f}  median {statistics.median(ordered):.3f}"
        f"  max {ordered[-1]:.3f}  n {len(ordered)}{comparison}"
    )
    return bound is None or quantile < bound


def find_quantile(values: Sequence[float], at: float) -> float:
    """Returns the quantile `at` in (0, 1) of values, which is one of them."""
    return sorted(values)[min(len(values) - 1, int(at * len(values)))]


def align_columns(rows: Sequence[Sequence[str]]) -> str:
    """Returns rows of cells as aligned columns for a terminal."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
