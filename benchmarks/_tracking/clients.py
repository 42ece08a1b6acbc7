"""Batches in the form of each server that takes them over HTTP."""

from dataclasses import dataclass

import orjson

from benchmarks._tracking.workloads import Workload


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
        return {"Authorization": f"Bearer {self.token}"}

    def encode(self, workload: Workload, number: int) -> bytes:
        """See `BatchEncoder`."""
        steps = workload.make_steps(number)
        record = {
            "type": "table",
            "run": self.run_id,
            "env_step": steps.env_step,
            "update": steps.update,
            "episode": steps.episode,
            "wall": steps.wall,
            "series": steps.series,
        }
        return orjson.dumps({"first_seq": number + 1, "records": [record]})


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
        steps = workload.make_steps(number)
        metrics = [
            {"key": name, "value": value, "step": step, "timestamp": int(1e3 * wall)}
            for name, values in steps.series.items()
            for value, step, wall in zip(values, steps.env_step, steps.wall, strict=True)
        ]
        return orjson.dumps({"run_id": self.run_id, "metrics": metrics})


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
        steps = workload.make_steps(number)
        logs = [
            {
                "project": self.project,
                "run": self.run,
                "step": step,
                "metrics": {name: values[place] for name, values in steps.series.items()},
            }
            for place, step in enumerate(steps.env_step)
        ]
        return orjson.dumps({"args": [], "kwargs": {"logs": logs, "hf_token": None}})
