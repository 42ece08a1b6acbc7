"""Real trainings in this process: work orders, assembled parts, and recorded values."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from palestra.contract.identity import hash_definition
from palestra.contract.names import new_id
from palestra.contract.telemetry import RunRecord
from palestra.contract.work_order import WorkOrder
from tests.support.records_of_tables import split_table
from workers.assembly.process_setup import prepare_process
from workers.assembly.training import Training, TrainingContext, assemble_training
from workers.core.types import StopReason
from workers.snapshot.attempt_store import load_snapshot
from workers.snapshot.snapshot_directory import LoadedSnapshot
from workers.trainer_process.control import ControlFlag

RUN = new_id("run")


class ListSink:
    """A sink that keeps the records of a recorder in a list."""

    def __init__(self) -> None:
        self.records: list[RunRecord] = []

    def append(self, records: Iterable[RunRecord]) -> int:
        self.records.extend(records)
        return len(self.records)


def make_definition(agent: str = "dqn", num_envs: int = 1, **sections: Any) -> dict[str, Any]:
    """Returns a small definition; `sections` replace or add top-level members."""
    agents = {
        "dqn": {
            "name": "dqn",
            "batch_size": 16,
            "learning_starts": 60,
            "hidden_sizes": [16],
            "target_update_every": 25,
            "buffer_size": 500,
        },
        "ppo": {
            "name": "ppo",
            "rollout_steps": 32,
            "minibatch_size": 16,
            "passes": 2,
            "hidden_sizes": [16],
        },
        "a3c": {"name": "a3c", "processes": 1, "hidden_sizes": [16]},
    }
    base: dict[str, Any] = {
        "kind": "rl",
        "schema_version": 2,
        "name": "test",
        "env": {"id": "CartPole-v1", "num_envs": num_envs},
        "agent": agents[agent],
        "loop": {"env_steps": 600, "epoch_env_steps": 100},
        "evaluation": {"every_env_steps": 250, "episodes": 3, "max_episode_steps": 50},
        "snapshot": {"every_env_steps": 130},
    }
    return {**base, **sections}


def make_work_order(
    document: dict[str, Any], *, seed: int = 7, schedule: str = "train", **run: Any
) -> WorkOrder:
    """Returns a work order of one run."""
    order = {
        "version": 2,
        "attempt_id": new_id("att"),
        "attempt_number": 1,
        "job_id": new_id("job"),
        "experiment_id": "test-0000000000000000",
        "schedule": schedule,
        "definition": document,
        "code": {"kind": "builtin"},
        "resources": {},
        "limits": {},
        "runs": [{"run_id": RUN, "seed": seed, "fence": 1, **run}],
    }
    return WorkOrder.model_validate_json(json.dumps(order))


class TrainingAttempt:
    """One attempt at training a definition.

    Args:
        order: Work order.
        directory: Directory of its snapshots.
        snapshot: Snapshot to resume from.
        scales_by_bounds: Scale of bytes of a training that does not resume; see `Manifest`.
    """

    def __init__(
        self,
        order: WorkOrder,
        directory: Path,
        snapshot: Path | None = None,
        *,
        scales_by_bounds: bool = True,
    ) -> None:
        self.order = order
        self.snapshots = directory
        self.sink = ListSink()
        self.control = ControlFlag()
        self._snapshot = None if snapshot is None else load_order_snapshot(order, snapshot)
        self._scales_by_bounds = (
            scales_by_bounds if self._snapshot is None else self._snapshot.manifest.scales_by_bounds
        )
        self.exact: bool | None = None

    def run(self, stop_at: int | None = None, pause_at: int | None = None) -> "TrainingAttempt":
        """Trains until the budget is used.

        `stop_at` aborts the loop as a kill does, `pause_at` as an order to pause does.
        """
        device = prepare_process(self.order.resources, self.order.runs[0].seed)
        context = TrainingContext(
            order=self.order,
            run=self.order.runs[0],
            snapshots=self.snapshots,
            videos=self.snapshots.parent / "videos",
            sink=self.sink,
            control=self.control,
            device=device,
            scales_by_bounds=self._scales_by_bounds,
        )
        with assemble_training(context) as training:
            if self._snapshot is not None:
                self.exact = training.resume(self._snapshot).is_exact
            self._drive(training, stop_at, pause_at)
        return self

    def _drive(self, training: Training, stop_at: int | None, pause_at: int | None) -> None:
        for clock in training.engine.ticks():
            if pause_at is not None and clock.env_steps >= pause_at:
                self.control.give(StopReason.PAUSE)
                pause_at = None
            if stop_at is not None and clock.env_steps >= stop_at:
                return

    def get_snapshot(self, reason: str) -> tuple[Path, int]:
        """Returns the newest snapshot that was written for the given reason, and its env_step."""
        written = [
            record
            for record in self.dump_records()
            if record["type"] == "snapshot" and record["reason"] == reason
        ]
        return self.snapshots / written[-1]["snapshot_id"], written[-1]["env_step"]

    def hash_weights(self) -> str:
        """Returns the SHA-256 of the agent's tensors in the last snapshot."""
        files = [record for record in self.dump_records() if record["type"] == "snapshot"][-1][
            "files"
        ]
        return str(next(file["sha256"] for file in files if file["name"] == "agent.safetensors"))

    def dump_records(self) -> list[dict[str, Any]]:
        """Returns the records as JSON, those of tables as one of points for each series."""
        return [
            one
            for record in self.sink.records
            for one in split_table(record.model_dump(mode="json"))
        ]

    def list_points(self, until: int | None = None) -> list[tuple[Any, ...]]:
        """Returns everything that curves show, sorted, without wall times.

        `until` leaves out points after that env_step.
        """
        rows: list[tuple[Any, ...]] = []
        for record in self.dump_records():
            rows += _list_rows(record)
        return sorted((row for row in rows if until is None or row[1] <= until), key=repr)


def _list_rows(record: dict[str, Any]) -> list[tuple[Any, ...]]:
    match record["type"]:
        case "points":
            columns = zip(
                record["env_step"],
                record["update"],
                record["episode"],
                record["value"],
                strict=True,
            )
            return [(record["series"], *row) for row in columns]
        case "episodes":
            names = (
                "env_step",
                "env_index",
                "update",
                "episode",
                "episode_return",
                "episode_length",
                "terminated",
            )
            return [
                ("episode", *row) for row in zip(*(record[name] for name in names), strict=True)
            ]
        case "evaluation":
            return [
                (
                    "evaluation",
                    record["env_step"],
                    record["update"],
                    record["returns"],
                    record["seed"],
                    record["final"],
                )
            ]
        case "experiment_stats":
            stats = {key: value for key, value in record.items() if key not in {"wall", "run"}}
            return [("stats", record["total_env_steps"], json.dumps(stats, sort_keys=True))]
        case _:
            return []


def load_order_snapshot(order: WorkOrder, directory: Path) -> LoadedSnapshot:
    """Returns the loaded snapshot of the order's run."""
    return load_snapshot(directory, run_id=RUN, definition_hash=hash_definition(order.definition))
