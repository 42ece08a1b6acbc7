"""The table of one task's results, and the comparison with its targets."""

import statistics
from collections.abc import Iterator, Sequence
from typing import Any, Final

from benchmarks._peers.tasks import Task
from benchmarks._report import align_columns

RATE: Final = "env_steps_per_second"
CPU_RATE: Final = "env_steps_per_cpu_second"
"""env_steps per second of processor time.

It varies less than the wall-time rate when other programs use the machine.
"""
SECONDS: Final = "loop_seconds"
MEMORY: Final = "peak_mib"
EAGER, COMPILED, PACK, PACKS = (
    "palestra eager",
    "palestra compiled",
    "palestra pack",
    "palestra packs at once",
)
REGISTERED: Final = ", registered simulator"
"""Follows the label of trainings in the environment's own code, where Palestra has its own."""
MEMORY_PEER: Final = "sb3"
MEMORY_TARGETS: Final = {EAGER: 1.0, COMPILED: 1.6}
"""Upper bounds on memory, as multiples of the memory of `MEMORY_PEER`."""
HEAD: Final = (
    "",
    "env_steps/s",
    "per cpu s",
    "start s",
    "first learn s",
    "all of it /s",
    "memory MiB",
    "mean return",
)


class Results:
    """The results of one task.

    Args:
        task: The task with its targets.
        pack: Seeds per pack.
        packs: Number of packs that also train these seeds concurrently.
    """

    def __init__(self, task: Task, pack: int, packs: int = 1) -> None:
        self._task = task
        self._pack, self._packs = pack, packs
        self._by_peer: dict[str, list[dict[str, Any]]] = {}

    def add(self, result: dict[str, Any]) -> None:
        """Adds the measurements of one training."""
        self._by_peer.setdefault(result["peer"], []).append(result)

    def table(self) -> str:
        """Returns the table of medians, with minimum and maximum in brackets."""
        return align_columns([HEAD, *map(self._row, self._by_peer)])

    def compare_with_targets(self) -> list[tuple[str, bool]]:
        """Returns a line for each target, and whether the target is met."""
        return [*self._speed(), *self._memory(), *self._packing()]

    def _speed(self) -> Iterator[tuple[str, bool]]:
        ours, fastest = self._fastest([EAGER, COMPILED]), self._fastest_peer()
        if fastest is None:
            return
        if ours is None:
            yield f"palestra / {fastest}: nothing was trained", False
            return
        yield self._compare(ours, fastest, self._task.target)
        registered = self._fastest([EAGER + REGISTERED, COMPILED + REGISTERED])
        if registered is not None:
            yield self._compare(registered, fastest, None)

    def _compare(self, ours: str, fastest: str, target: float | None) -> tuple[str, bool]:
        ratios = self._ratios(ours, fastest, RATE)
        by_cpu = _spread(self._ratios(ours, fastest, CPU_RATE), ".2f")
        text = f"{ours} / {fastest}: {_spread(ratios, '.2f')} x, by processor time {by_cpu} x"
        if target is None:
            return text, True
        return f"{text}; target {target:g} x", statistics.median(ratios) >= target

    def _memory(self) -> Iterator[tuple[str, bool]]:
        for ours, target in MEMORY_TARGETS.items():
            if ours in self._by_peer and MEMORY_PEER in self._by_peer:
                ratio = self._median(ours, MEMORY) / self._median(MEMORY_PEER, MEMORY)
                yield (
                    f"memory of {ours} / {MEMORY_PEER}: {ratio:.2f} x; at most {target:g} x",
                    ratio <= target,
                )

    def _packing(self) -> Iterator[tuple[str, bool]]:
        if PACK not in self._by_peer:
            return
        one, fastest, least = (
            self._fastest([EAGER, COMPILED]),
            self._fastest_peer(),
            self._task.pack_target,
        )
        if one is not None:
            yield self._multiple(f"pack of {self._pack}", PACK, one)
            if PACKS in self._by_peer:
                yield self._multiple(
                    f"the {self._pack} seeds in {self._packs} packs at once, on a core each",
                    PACKS,
                    one,
                )
        if fastest is not None and least is not None:
            ratio = self._pack * self._median(fastest, SECONDS) / self._median(PACK, SECONDS)
            yield (
                (
                    f"{self._pack} x {fastest} / pack of {self._pack}: {ratio:.2f} x the "
                    f"time; target {least:g} x"
                ),
                ratio >= least,
            )

    def _multiple(self, what: str, ours: str, one: str) -> tuple[str, bool]:
        """Returns the time of several seeds divided by the time of one."""
        ratio, most = self._median(ours, SECONDS) / self._median(one, SECONDS), self._task.pack_time
        return f"{what} / one seed: {ratio:.2f} x the time" + (
            f"; at most {most:g} x" if most else ""
        ), not most or ratio <= most

    def _fastest_peer(self) -> str | None:
        return self._fastest([peer for peer in self._by_peer if not peer.startswith("palestra ")])

    def _fastest(self, peers: Sequence[str]) -> str | None:
        return max(
            (peer for peer in peers if peer in self._by_peer),
            key=lambda peer: self._median(peer, RATE),
            default=None,
        )

    def _values(self, peer: str, key: str) -> list[float]:
        return [float(result[key]) for result in self._by_peer[peer]]

    def _median(self, peer: str, key: str) -> float:
        return statistics.median(self._values(peer, key))

    def _ratios(self, ours: str, other: str, key: str) -> list[float]:
        """Returns Palestra's rate divided by another library's, per repetition."""
        return [
            mine / theirs
            for mine, theirs in zip(self._values(ours, key), self._values(other, key), strict=False)
        ]

    def _row(self, peer: str) -> tuple[str, ...]:
        return (
            peer,
            _spread(self._values(peer, RATE), ",.0f"),
            f"{self._median(peer, CPU_RATE):,.0f}",
            f"{self._median(peer, 'setup_seconds'):.1f}",
            f"{self._median(peer, 'warm_up_seconds'):.1f}",
            f"{self._median(peer, 'together_per_second'):,.0f}",
            f"{self._median(peer, MEMORY):,.0f}",
            _spread(self._values(peer, "mean_return"), ".0f")
            if self._task.is_return_reported
            else "",
        )


def combine(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns the measurements of concurrent trainings, combined into one result.

    The time is from the start of the first to the end of the last.
    """
    first, *others = results
    if not others:
        return first
    most = {
        key: max(result[key] for result in results) for key in ("setup_seconds", "warm_up_seconds")
    }
    seconds = max(one["ended"] for one in results) - min(
        one["ended"] - one[SECONDS] for one in results
    )
    env_steps, cpu_seconds = (
        sum(one["env_steps"] for one in results),
        sum(one["env_steps"] / one[CPU_RATE] for one in results),
    )
    whole = max(one["env_steps"] / one["together_per_second"] for one in results)
    return {
        **first,
        **most,
        "peer": PACKS,
        "seeds": ",".join(str(one["seeds"]) for one in results),
        "env_steps": env_steps,
        SECONDS: round(seconds, 3),
        RATE: round(env_steps / seconds, 1),
        CPU_RATE: round(env_steps / cpu_seconds, 1),
        "together_per_second": round(env_steps / whole, 1),
        MEMORY: sum(one[MEMORY] for one in results),
        "mean_return": None
        if first["mean_return"] is None
        else statistics.fmean(one["mean_return"] for one in results),
    }


def _spread(values: Sequence[float], form: str) -> str:
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"
