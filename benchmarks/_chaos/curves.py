"""Reads the recorded history of a run, and compares it with another run's."""

import math
from typing import Any

from tests.support.process_stack import Stack

BUCKETS = 1_500
_OF_THE_MACHINE = ("system/", "time/", "speed/")
"""Series of the machine and the clock, which no two runs share."""
_EVALUATED = ("env_step", "update", "episode", "episodes", "mean", "stdev", "min", "max", "seed")


def read_history(stack: Stack, run_id: str) -> dict[str, Any]:
    """Returns all curves, evaluations and counters of a run, and the digest of its final state."""
    run = stack.get(f"runs/{run_id}")
    names = [row["name"] for row in stack.get(f"runs/{run_id}/series", limit=500)["items"]]
    history: dict[str, Any] = {
        name: run["progress"][name] for name in ("env_step", "update", "episode")
    }
    history["curves"] = {
        name: _read_curve(stack, run_id, name, run)
        for name in sorted(names)
        if not name.startswith(_OF_THE_MACHINE)
    }
    rows = stack.get(f"runs/{run_id}/evaluations", limit=500)["items"]
    history["evaluations"] = sorted([row[name] for name in _EVALUATED] for row in rows)
    history["parameters"] = _read_parameters(stack, run_id)
    return history


def list_differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Returns a description of each difference between two histories; empty if they are equal."""
    found = [
        f"{name}: {one[name]} and {other[name]}"
        for name in ("env_step", "update", "episode")
        if one[name] != other[name]
    ]
    if one["curves"].keys() != other["curves"].keys():
        found.append(
            f"series: {sorted(one['curves'].keys() ^ other['curves'].keys())} are in one of the two"
        )
    both = sorted(one["curves"].keys() & other["curves"].keys())
    found += [
        f"the series {name}"
        for name in both
        if not _are_equal(one["curves"][name], other["curves"][name])
    ]
    found += [name for name in ("evaluations", "parameters") if one[name] != other[name]]
    return found


def _read_curve(stack: Stack, run_id: str, series: str, run: dict[str, Any]) -> list[Any]:
    """Returns the points per bucket and their values.

    The x axis is the episode for series with one point per episode, else env_step.
    """
    x = "episode" if series.startswith("episode/") else "env_step"
    last = run["progress"][x]
    parts: list[Any] = []
    for start in range(0, last + 1, BUCKETS) if x == "episode" else [0]:
        end = min(start + BUCKETS - 1, last) if x == "episode" else last
        query = {
            "select": [{"run_id": run_id, "series": series}],
            "x": x,
            "start": start,
            "end": max(end, start + 1),
        }
        (curve,) = stack.post("series:query", {**query, "buckets": BUCKETS})["series"]
        parts += [
            curve[name] for name in ("points", "nonfinite", "n", "min", "max", "last", "mean")
        ]
    return parts


def _read_parameters(stack: Stack, run_id: str) -> list[list[Any]]:
    """Returns names and digests of the tensors and arrays of the final snapshot."""
    snapshots = [
        row
        for row in stack.get(f"runs/{run_id}/snapshots", limit=500)["items"]
        if row["reason"] == "finish" and not row["superseded"]
    ]
    newest = max(snapshots, key=lambda row: row["env_step"])
    return sorted(
        [file["name"], file["sha256"]]
        for file in newest["files"]
        if file["name"].endswith((".safetensors", ".npz"))
    )


def _are_equal(one: Any, other: Any) -> bool:
    """Compares two curves; means may differ in the last bits.

    The order in which values are summed depends on how they are divided into blocks.
    """
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(
            _are_equal(a, b) for a, b in zip(one, other, strict=True)
        )
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12)
    return bool(one == other)
