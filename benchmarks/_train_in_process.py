"""Trains a definition in this process with the parts of a worker's trainer.

Neither a server nor a supervisor takes part.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from palestra.contract.definition import RlDefinition
from palestra.contract.job_options import Submission
from palestra.contract.names import new_id
from palestra.contract.telemetry import Evaluation, RunRecord
from palestra.contract.work_order import WorkOrder
from workers.assembly.process_setup import prepare_process
from workers.assembly.training import (
    PackTraining,
    Training,
    TrainingContext,
    assemble_pack,
    assemble_training,
    build_evaluator,
)
from workers.recording.recorder import Sink
from workers.rl.evaluate.vector_evaluator import fixed_seed_rule
from workers.trainer_process.control import ControlFlag


def build_bare_submission(
    name: str, env: dict[str, Any], agent: dict[str, Any], env_steps: int, **resources: Any
) -> Submission:
    """Returns the submission of a user for training on one thread.

    Evaluations and snapshots during the training are off.
    """
    definition = {
        "kind": "rl",
        "name": name,
        "env": env,
        "agent": agent,
        "loop": {"env_steps": env_steps},
        "evaluation": {"every_env_steps": None, "episodes": 1},
        "snapshot": {"every_env_steps": None},
    }
    return Submission.model_validate(
        {"definition": definition, "options": {"resources": {"cpu_threads": 1, **resources}}}
    )


def build_work_order(submission: Submission, seeds: Sequence[int]) -> WorkOrder:
    """Returns the work order that a worker would receive for seeds of a submission."""
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
        "runs": [{"run_id": new_id("run"), "seed": seed, "fence": 1} for seed in seeds],
    }
    return WorkOrder.model_validate_json(json.dumps(order))


@contextmanager
def open_training(
    submission: Submission, seed: int, directory: Path, sink: Sink
) -> Iterator[Training]:
    """Opens a training that has not started.

    Its snapshots are written to `directory`, its records to `sink`.
    """
    (context,) = _contexts(build_work_order(submission, [seed]), directory, [sink])
    with assemble_training(context) as training:
        yield training


@contextmanager
def open_pack(
    submission: Submission, seeds: Sequence[int], directory: Path, sinks: Sequence[Sink]
) -> Iterator[PackTraining]:
    """Opens a pack whose trainings run iterations in turn, with a sink for each.

    See `open_training`.
    """
    contexts = _contexts(build_work_order(submission, seeds), directory, sinks)
    with ExitStack() as stack:
        yield assemble_pack(contexts, [None] * len(seeds), stack)


class EvaluationSink:
    """A sink that keeps only evaluations."""

    def __init__(self) -> None:
        self.kept: list[Evaluation] = []

    def append(self, records: list[RunRecord]) -> int:
        self.kept += [record for record in records if isinstance(record, Evaluation)]
        return len(self.kept)

    def env_steps_to_reach(self, target: float) -> int | None:
        """Returns the env_steps of the first evaluation with at least this mean return."""
        return next((one.env_step for one in self.kept if one.mean >= target), None)


def evaluate_from_seed(
    training: Training, definition: RlDefinition, seed: int, episodes: int
) -> float:
    """Returns the mean return of a trained agent on episodes that start from `seed`.

    Flushes the records of the ended training first.
    """
    training.recorder.close()
    evaluator = build_evaluator(definition, training.agent, fixed_seed_rule(seed), episodes)
    mean = evaluator.evaluate(training.engine.clock).mean
    evaluator.close()
    return mean


def _contexts(order: WorkOrder, directory: Path, sinks: Sequence[Sink]) -> list[TrainingContext]:
    device, control = prepare_process(order.resources, order.runs[0].seed), ControlFlag()
    snapshots, videos = directory / "snapshots", directory / "videos"
    return [
        TrainingContext(
            order=order,
            run=run,
            snapshots=snapshots,
            videos=videos,
            sink=sink,
            control=control,
            device=device,
        )
        for run, sink in zip(order.runs, sinks, strict=True)
    ]
