"""What the trainings of one task came to, as a table and as verdicts."""

import statistics
from collections.abc import Iterator, Sequence
from typing import Any, Final

from benchmarks._peers.tasks import Task
from benchmarks._report import aligned

RATE: Final = "env_steps_per_second"
CPU_RATE: Final = "env_steps_per_cpu_second"
"""By the time that the processor worked for it; on a machine that others use too, it varies less."""
SECONDS: Final = "loop_seconds"
MEMORY: Final = "peak_mib"
EAGER, COMPILED, PACK = "palestra eager", "palestra compiled", "palestra pack"
MEMORY_PEER: Final = "sb3"
MEMORY_TARGETS: Final = {EAGER: 1.0, COMPILED: 1.6}
"""Most memory as a multiple of that of `MEMORY_PEER`."""
HEAD: Final = ("", "env_steps/s", "per cpu s", "start s", "first learn s", "all of it /s", "memory MiB", "mean return")


class Results:
    """Results of one task.

    Args:
        task: With what is asked for.
        pack: Seeds of a pack.
    """

    def __init__(self, task: Task, pack: int) -> None:
        self._task = task
        self._pack = pack
        self._by_peer: dict[str, list[dict[str, Any]]] = {}

    def add(self, result: dict[str, Any]) -> None:
        """Takes one training's figures."""
        self._by_peer.setdefault(result["peer"], []).append(result)

    def table(self) -> str:
        """Returns the table: medians, with least and greatest in brackets."""
        return aligned([HEAD, *map(self._row, self._by_peer)])

    def verdicts(self) -> list[tuple[str, bool]]:
        """Returns a line about each target, and whether it is met."""
        return [*self._speed(), *self._memory(), *self._packing()]

    def _speed(self) -> Iterator[tuple[str, bool]]:
        ours, fastest = self._fastest([EAGER, COMPILED]), self._fastest_peer()
        if fastest is None:
            return
        if ours is None:
            yield f"palestra / {fastest}: nothing was trained", False
            return
        ratios, target = self._ratios(ours, fastest, RATE), self._task.target
        text = (
            f"{ours} / {fastest}: {_spread(ratios, '.2f')} x, by processor time {_spread(self._ratios(ours, fastest, CPU_RATE), '.2f')} x"
        )
        if target is None:
            yield text, True
        else:
            yield f"{text}; target {target:g} x", statistics.median(ratios) >= target

    def _memory(self) -> Iterator[tuple[str, bool]]:
        for ours, target in MEMORY_TARGETS.items():
            if ours in self._by_peer and MEMORY_PEER in self._by_peer:
                ratio = self._median(ours, MEMORY) / self._median(MEMORY_PEER, MEMORY)
                yield f"memory of {ours} / {MEMORY_PEER}: {ratio:.2f} x; at most {target:g} x", ratio <= target

    def _packing(self) -> Iterator[tuple[str, bool]]:
        if PACK not in self._by_peer:
            return
        one, fastest, (most, least) = self._fastest([EAGER, COMPILED]), self._fastest_peer(), (self._task.pack_time, self._task.pack_target)
        if one is not None:
            ratio = self._median(PACK, SECONDS) / self._median(one, SECONDS)
            yield (
                f"pack of {self._pack} / one seed: {ratio:.2f} x the time" + (f"; at most {most:g} x" if most else ""),
                not most or ratio <= most,
            )
        if fastest is not None and least is not None:
            ratio = self._pack * self._median(fastest, SECONDS) / self._median(PACK, SECONDS)
            yield f"{self._pack} x {fastest} / pack of {self._pack}: {ratio:.2f} x the time; target {least:g} x", ratio >= least

    def _fastest_peer(self) -> str | None:
        return self._fastest([peer for peer in self._by_peer if peer not in {EAGER, COMPILED, PACK}])

    def _fastest(self, peers: Sequence[str]) -> str | None:
        return max((peer for peer in peers if peer in self._by_peer), key=lambda peer: self._median(peer, RATE), default=None)

    def _values(self, peer: str, key: str) -> list[float]:
        return [float(result[key]) for result in self._by_peer[peer]]

    def _median(self, peer: str, key: str) -> float:
        return statistics.median(self._values(peer, key))

    def _ratios(self, ours: str, other: str, key: str) -> list[float]:
        """Returns our rate as a multiple of another one's, turn by turn."""
        return [mine / theirs for mine, theirs in zip(self._values(ours, key), self._values(other, key), strict=False)]

    def _row(self, peer: str) -> tuple[str, ...]:
        return (
            peer,
            _spread(self._values(peer, RATE), ",.0f"),
            f"{self._median(peer, CPU_RATE):,.0f}",
            f"{self._median(peer, 'setup_seconds'):.1f}",
            f"{self._median(peer, 'warm_up_seconds'):.1f}",
            f"{self._median(peer, 'together_per_second'):,.0f}",
            f"{self._median(peer, MEMORY):,.0f}",
            _spread(self._values(peer, "mean_return"), ".0f") if self._task.is_judged else "",
        )


def _spread(values: Sequence[float], form: str) -> str:
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"
