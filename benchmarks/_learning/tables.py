"""Tables of learning results: one row per seed of a preset, and the table of the README."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks._learning.presets import Preset

_T: Final = (
    12.706,
    4.303,
    3.182,
    2.776,
    2.571,
    2.447,
    2.365,
    2.306,
    2.262,
    2.228,
    2.201,
    2.179,
    2.160,
    2.145,
    2.131,
    2.120,
    2.110,
    2.101,
    2.093,
)
"""Quantile 0.975 of Student's t by degrees of freedom, from 1 on."""

HEAD: Final = (
    "preset",
    "environment",
    "agent",
    "target",
    "mean final return",
    "95 % interval",
    "seeds that is_reached it",
    "env_steps until then",
    "env_steps in all",
    "seconds",
    "",
)
_BEGIN: Final = "<!-- table: written by `make learning` -->"
_END: Final = "<!-- end of the table -->"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table: the results of the seeds of one preset."""

    preset: Preset
    seeds: Sequence[dict[str, Any]]

    @property
    def returns(self) -> list[float]:
        """Mean final return of each seed."""
        return [float(one["final_return"]) for one in self.seeds]

    @property
    def is_reached(self) -> bool:
        """Whether the mean over the seeds is at least the target."""
        return statistics.fmean(self.returns) >= self.preset.target

    def cells(self) -> tuple[str, ...]:
        """Returns the cells of the row as text."""
        definition, at = (
            self.preset.definition,
            [one["reached_at"] for one in self.seeds if one["reached_at"] is not None],
        )
        low, high = interval(self.returns)
        seconds = statistics.median(float(one["seconds"]) for one in self.seeds)
        return (
            self.preset.name,
            definition.env.id,
            definition.agent.name,
            f"{self.preset.target:g}",
            f"{statistics.fmean(self.returns):.1f}",
            f"{low:.1f} to {high:.1f}",
            f"{len(at)} of {len(self.seeds)}",
            f"{statistics.median(at):,.0f} ({min(at):,} to {max(at):,})" if at else "",
            f"{statistics.median(int(one['env_steps']) for one in self.seeds):,.0f}",
            f"{seconds:.0f}",
            "✓" if self.is_reached else "✗",
        )


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Returns the 95 % interval of the mean by Student's t; infinite for a single value."""
    if len(values) < 2:
        return -math.inf, math.inf
    factor = (
        _T[len(values) - 2] if len(values) - 2 < len(_T) else statistics.NormalDist().inv_cdf(0.975)
    )
    half = factor * statistics.stdev(values) / math.sqrt(len(values))
    mean = statistics.fmean(values)
    return mean - half, mean + half


def write_readme(
    path: Path, rows: Sequence[tuple[str, ...]], names: Sequence[str], note: str
) -> None:
    """Inserts rows into the table of a README.

    Rows of presets that were not trained this time are kept; rows of removed presets are deleted.

    Args:
        path: The README, which marks the start and the end of the table.
        rows: New rows.
        names: All presets, in the order of the table.
        note: How these rows were measured.
    """
    before, _, rest = path.read_text("utf-8").partition(_BEGIN)
    old, _, after = rest.partition(_END)
    lines = {line.split("|")[1].strip(): line for line in old.splitlines() if line.startswith("| ")}
    lines |= {row[0]: _markdown(row) for row in rows}
    table = [
        _markdown(HEAD),
        "|" + "---|" * len(HEAD),
        *(lines[name] for name in names if name in lines),
    ]
    path.write_text("\n".join([before + _BEGIN, "", note, "", *table, "", _END + after]), "utf-8")


def _markdown(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
