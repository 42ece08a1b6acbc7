"""Batches in the form of each server that takes them over HTTP.

A body is encoded once for all clients, with a placeholder for the client's run, so that the load
generator, which shares the machine with the server, takes little of its time.
"""

from dataclasses import dataclass
from functools import cache
from typing import Final

import orjson

from benchmarks._tracking.workloads import Workload
from palestra.contract.answers import CONTRACT_HEADER, CONTRACT_VERSION

_RUN: Final = "{run}"


@dataclass(frozen=True, slots=True)
class PalestraClient:
    """An attempt that may write telemetry."""

    attempt_id: str
    run_id: str
    token: str

    @property
    def path(self) -> str:
        """See `BatchEncoder`."""
        return f"/api/v1/attempts/{self.attempt_id}/telemetry"

    @property
    def headers(self) -> dict[str, str]:
        """See `BatchEncoder`."""
        return {
            "Authorization": f"Bearer {self.token}",
            CONTRACT_HEADER: str(CONTRACT_VERSION),
        }

    def encode(self, workload: Workload, number: int) -> bytes:
        """See `BatchEncoder`."""
        return _encode_table(workload, number).replace(_RUN.encode(), self.run_id.encode(), 1)


@dataclass(frozen=True, slots=True)
class MlflowClient:
    """A run of MLflow."""

    run_id: str
    path: str = "/api/2.0/mlflow/runs/log-batch"

    @property
    def headers(self) -> dict[str, str]:
        """See `BatchEncoder`."""
        return {}

    def encode(self, workload: Workload, number: int) -> bytes:
        """See `BatchEncoder`; MLflow takes at most 1,000 points at once."""
        return _encode_metrics(workload, number).replace(_RUN.encode(), self.run_id.encode(), 1)


@dataclass(frozen=True, slots=True)
class TrackioClient:
    """A run of Trackio."""

    project: str
    run: str
    token: str
    path: str = "/api/bulk_log"

    @property
    def headers(self) -> dict[str, str]:
        """See `BatchEncoder`."""
        return {"X-Trackio-Write-Token": self.token}

    def encode(self, workload: Workload, number: int) -> bytes:
        """See `BatchEncoder`; an entry of Trackio is a step with all its values."""
        logs = _encode_logs(workload, number, self.project)
        return logs.replace(_RUN.encode(), self.run.encode())


@cache
def _encode_table(workload: Workload, number: int) -> bytes:
    steps = workload.make_steps(number)
    record = {
        "type": "table",
        "run": _RUN,
        "env_step": steps.env_step,
        "update": steps.update,
        "episode": steps.episode,
        "wall": steps.wall,
        "series": steps.series,
    }
    return orjson.dumps({"first_seq": number + 1, "records": [record]})


@cache
def _encode_metrics(workload: Workload, number: int) -> bytes:
    steps = workload.make_steps(number)
    metrics = [
        {"key": name, "value": value, "step": step, "timestamp": int(1e3 * wall)}
        for name, values in steps.series.items()
        for value, step, wall in zip(values, steps.env_step, steps.wall, strict=True)
    ]
    return orjson.dumps({"run_id": _RUN, "metrics": metrics})


@cache
def _encode_logs(workload: Workload, number: int, project: str) -> bytes:
    steps = workload.make_steps(number)
    logs = [
        {
            "project": project,
            "run": _RUN,
            "step": step,
            "metrics": {name: values[place] for name, values in steps.series.items()},
        }
        for place, step in enumerate(steps.env_step)
    ]
    return orjson.dumps({"args": [], "kwargs": {"logs": logs, "hf_token": None}})
