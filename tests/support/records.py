"""Telemetry records and batches in the form that a trainer writes."""

import json
from collections.abc import Sequence
from typing import Any

from app.services.telemetry.batches import Delivery
from palestra.contract.telemetry import TelemetryBatch

Json = dict[str, Any]


def make_points(
    run: str,
    series: str,
    steps: Sequence[int],
    values: Sequence[Any] | None = None,
    *,
    update: int = 0,
) -> Json:
    """Returns a record of points; without `values`, each value is its step."""
    return {
        "type": "points",
        "run": run,
        "series": series,
        "env_step": list(steps),
        "update": [update] * len(steps),
        "episode": [0] * len(steps),
        "wall": [float(step) for step in steps],
        "value": list(values) if values is not None else [float(step) for step in steps],
    }


def make_episodes(run: str, numbers: Sequence[int], *, step: int = 10) -> Json:
    """Returns a record of finished episodes."""
    return {
        "type": "episodes",
        "run": run,
        "env_index": [0] * len(numbers),
        "env_step": [number * step for number in numbers],
        "update": [0] * len(numbers),
        "episode": list(numbers),
        "wall": [1.0] * len(numbers),
        "episode_return": [float(number) for number in numbers],
        "episode_length": [step] * len(numbers),
        "terminated": [True] * len(numbers),
    }


def make_evaluation(
    run: str, env_step: int, mean: Any, *, snapshot_id: str | None = None, update: int = 0
) -> Json:
    """Returns an evaluation of one episode."""
    numbers = dict.fromkeys(("mean", "median", "min", "max"), mean)
    lengths = {f"length_{name}": 1.0 for name in ("mean", "median", "stdev", "min", "max")}
    at = {"env_step": env_step, "update": update, "episode": 1, "wall": 1.0}
    rest = {"episodes": 1, "stdev": 0.0, "returns": [mean], "seed": 7, "snapshot_id": snapshot_id}
    return {"type": "evaluation", "run": run, **at, **numbers, **lengths, **rest}


def make_stats(run: str, env_steps: int) -> Json:
    """Returns the record of the statistics of an epoch."""
    counters = {
        "total_epoch": 1,
        "total_itr": 5,
        "total_env_steps": env_steps,
        "update": 3,
        "episode": 2,
    }
    return {"type": "experiment_stats", "run": run, "wall": 1.0, **counters}


def make_log(run: str, *lines: str, open_lines: Sequence[str] = (), stream: str = "stdout") -> Json:
    """Returns a record with lines of an output, by default of standard output."""
    record = {"type": "log", "run": run, "stream": stream, "wall": 1.0, "lines": list(lines)}
    return record | ({"open_lines": list(open_lines)} if open_lines else {})


def make_system_record(run: str, **values: float) -> Json:
    """Returns a record of resource use."""
    return {
        "type": "system",
        "run": run,
        "wall": 1.0,
        "env_step": 1,
        "update": 0,
        "episode": 0,
        "values": values,
    }


def make_note(run: str, message: str) -> Json:
    return {"type": "note", "run": run, "wall": 1.0, "code": "a_note", "message": message}


def make_snapshot(
    run: str,
    snapshot_id: str,
    env_step: int,
    files: Sequence[Json],
    *,
    update: int = 0,
    score: Any = None,
) -> Json:
    """Returns the record of a written snapshot."""
    at = {"env_step": env_step, "update": update, "episode": 0, "wall": 1.0}
    rest = {
        "reason": "periodic",
        "format_version": 1,
        "resume_exact": True,
        "score": score,
        "files": list(files),
    }
    return {"type": "snapshot", "run": run, "snapshot_id": snapshot_id, **at, **rest}


def make_batch(first_seq: int, records: Sequence[Json]) -> TelemetryBatch:
    return TelemetryBatch.model_validate_json(
        json.dumps({"first_seq": first_seq, "records": list(records)})
    )


def make_delivery(attempt_id: str, first_seq: int, records: Sequence[Json]) -> Delivery:
    """Returns a batch as the server receives it from an attempt."""
    return Delivery.from_batch(attempt_id, make_batch(first_seq, records))
