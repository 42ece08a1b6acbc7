"""Trains a definition in this process, by the very parts that a worker's trainer has, without server and supervisor."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from palestra.contract.names import new_id
from palestra.contract.options import Submission
from palestra.contract.work_order import WorkOrder
from workers.build.assemble import Training, TrainingContext, assemble_training
from workers.build.runtime import prepare_process
from workers.control import ControlFlag
from workers.record.recorder import Sink


def work_order(submission: Submission, seed: int) -> WorkOrder:
    """Returns what a worker would be told to do for one seed of a submission."""
    document = submission.model_dump(mode="json")
    order: dict[str, Any] = {
        "attempt_id": new_id("att"),
        "attempt_number": 1,
        "job_id": new_id("job"),
        "experiment_id": "benchmark-0000000000000000",
        "schedule": document["options"]["schedule"],
        "definition": document["definition"],
        "code": document["code"],
        "resources": document["options"]["resources"],
        "limits": document["options"]["limits"],
        "runs": [{"run_id": new_id("run"), "seed": seed, "fence": 1}],
    }
    return WorkOrder.model_validate_json(json.dumps(order))


@contextmanager
def training_of(submission: Submission, seed: int, directory: Path, sink: Sink) -> Iterator[Training]:
    """Opens a training that has not begun; its snapshots go into `directory`, its records into `sink`."""
    order = work_order(submission, seed)
    context = TrainingContext(
        order=order,
        run=order.runs[0],
        snapshots=directory / "snapshots",
        videos=directory / "videos",
        sink=sink,
        control=ControlFlag(),
        device=prepare_process(order.resources, seed),
    )
    with assemble_training(context) as training:
        yield training
