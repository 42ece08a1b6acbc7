"""What the trainings of one task came to, as a table and as a verdict."""

import statistics
from collections.abc import Sequence
from typing import Any, Final

from benchmarks._report import aligned

RATE: Final = "env_steps_per_second"
CPU_RATE: Final = "env_steps_per_cpu_second"
"""By the time that the processor worked for it; on a machine that others use too, it varies less."""
MEMORY: Final = "peak_mib"
MEMORY_PEER: Final = "sb3"
"""Whose memory ours is compared with."""
HEAD: Final = ("", "env_steps/s", "per cpu s", "start s", "first learn s", "all of it /s", "memory MiB", "mean return")


class Results:
    """Results of one task.

    Args:
        ours: The peer that is judged.
        target: Least multiple of the rate of the fastest of the others.
    """

    def __init__(self, ours: str, target: float) -> None:
        self.ours = ours
        self.target = target
        self.by_peer: dict[str, list[dict[str, Any]]] = {}

    def add(self, result: dict[str, Any]) -> None:
        """Takes one training's figures."""
        self.by_peer.setdefault(result["peer"], []).append(result)

    def values(self, peer: str, key: str) -> list[float]:
        """Returns a figure of all trainings of a peer."""
        return [float(result[key]) for result in self.by_peer.get(peer, [])]

    @property
    def fastest(self) -> str | None:
        """The fastest of the others by the median."""
        others = [peer for peer in self.by_peer if peer != self.ours]
        return max(others, key=lambda peer: statistics.median(self.values(peer, RATE)), default=None)

    def ratios(self, key: str = RATE) -> list[float]:
        """Returns our rate as a multiple of that of the fastest of the others, turn by turn."""
        if self.fastest is None:
            return []
        return [mine / other for mine, other in zip(self.values(self.ours, key), self.values(self.fastest, key), strict=False)]

    @property
    def memory_ratio(self) -> float | None:
        """Our memory as a multiple of SB3's."""
        mine, other = self.values(self.ours, MEMORY), self.values(MEMORY_PEER, MEMORY)
        return statistics.median(mine) / statistics.median(other) if mine and other else None

    @property
    def met(self) -> bool:
        """Whether the target is met; true where there is nobody to compare with."""
        return self.fastest is None or (bool(self.ratios()) and statistics.median(self.ratios()) >= self.target)


def table(results: Results) -> str:
    """Returns the table: medians, with least and greatest in brackets."""
    lines = [aligned([HEAD, *(_row(results, peer) for peer in results.by_peer)])]
    if results.fastest is not None and results.ratios():
        verdict = "ok" if results.met else "BELOW"
        ratio = f"{results.ours} / {results.fastest}: {_spread(results.ratios(), '.2f')} x; target {results.target:g} x  {verdict}"
        lines.append(f"{ratio}; by processor time {_spread(results.ratios(CPU_RATE), '.2f')} x")
    if results.memory_ratio is not None:
        lines.append(f"memory of {results.ours} / {MEMORY_PEER}: {results.memory_ratio:.2f} x; target 1 x eager, 1.6 x compiled")
    return "\n".join(lines)


def _row(results: Results, peer: str) -> tuple[str, ...]:
    def median(key: str, form: str) -> str:
        return format(statistics.median(results.values(peer, key)), form)

    return (
        peer,
        _spread(results.values(peer, RATE), ",.0f"),
        median(CPU_RATE, ",.0f"),
        median("setup_seconds", ".1f"),
        median("warm_up_seconds", ".1f"),
        median("together_per_second", ",.0f"),
        median(MEMORY, ",.0f"),
        _spread(results.values(peer, "mean_return"), ".0f"),
    )


def _spread(values: Sequence[float], form: str) -> str:
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"
