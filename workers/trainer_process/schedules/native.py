"""Executes the schedules of jobs: train, evaluate and export.

The training loop is that of `Engine.run`, or of an agent that trains by itself.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from palestra.contract.definition import Definition, RlDefinition
from palestra.contract.identity import hash_definition
from palestra.contract.names import (
    EvaluationPolicy,
    EvaluationSource,
    ExportFormat,
    list_sources,
)
from palestra.contract.telemetry import Evaluation
from palestra.contract.work_order import RunOrder
from workers.assembly.training import (
    PackTraining,
    Training,
    build_evaluator,
    describe_acting,
    load_agent,
)
from workers.core.protocols import ClockView, TrainableAgent
from workers.core.rng import derive_seed
from workers.engine.clock import StillClock
from workers.engine.lockstep import run_in_lockstep
from workers.engine.parts import RunResult
from workers.export.module_files import write_module
from workers.recording.recorder import evaluation_records
from workers.rl.evaluate.vector_evaluator import fixed_seed_rule
from workers.snapshot.snapshot_directory import LoadedSnapshot
from workers.trainer_process.schedules import agent_driven


def train(training: Training) -> RunResult:
    """Trains until the budget, a stop condition or an order."""
    return (
        training.engine.run()
        if training.own_loop is None
        else agent_driven.run(training.engine, training.own_loop)
    )


def train_pack(pack: PackTraining, on_end: Callable[[int], None]) -> list[RunResult]:
    """Trains the runs of a pack, each until its own end; returns how each ended.

    Args:
        pack: The pack, newly built or restored.
        on_end: Called for each run as soon as it has ended.
    """

    def leave(index: int) -> None:
        pack.leave(index)
        on_end(index)

    return run_in_lockstep([training.engine for training in pack.trainings], leave)


def evaluate(
    definition: Definition, run: RunOrder, snapshot: LoadedSnapshot, wall: float, device: str
) -> list[Evaluation]:
    """Returns the evaluations of a snapshot: one for each policy that the run orders.

    Args:
        definition: Definition with which the snapshot was trained.
        run: Sets the number of episodes and the seed; without a seed one is derived from the
            snapshot, different from those of evaluations during training.
        snapshot: The snapshot to evaluate.
        wall: Seconds since the epoch.
        device: A torch device.
    """
    clock: ClockView = StillClock.from_state(snapshot.state)
    agent = load_agent(definition, run.seed, snapshot, device)
    seed = run.evaluation_seed
    if seed is None:
        seed = derive_seed(run.seed, "evaluate job", clock.env_steps, clock.updates, bits=53)
    evaluator = build_evaluator(
        definition, agent, fixed_seed_rule(seed), run.episodes, policy=run.policy
    )
    with closing(evaluator):
        result = evaluator.evaluate(clock)
    return evaluation_records(
        run.run_id,
        clock,
        result,
        wall,
        list_job_sources(definition, run.policy),
        snapshot_id=snapshot.manifest.snapshot_id,
    )


def list_job_sources(
    definition: Definition, policy: EvaluationPolicy | None
) -> tuple[EvaluationSource, ...]:
    """Returns the sources of the results of a job that evaluates a policy, by `list_sources`."""
    if not isinstance(definition, RlDefinition):
        return (EvaluationSource.EVALUATION,)
    scored = definition.evaluation.policy
    return list_sources(policy or scored, scored)


def export(
    definition: Definition,
    run: RunOrder,
    agent: TrainableAgent,
    clock: ClockView,
    directory: Path,
    formats: Sequence[ExportFormat],
) -> list[Path]:
    """Writes the files that are needed to act, or to predict, into `directory` and returns them.

    The list is empty if `formats` is empty.
    """
    if not formats:
        return []
    shown, example = describe_acting(definition, agent)
    description = {
        **shown,
        "definition_hash": hash_definition(definition),
        "run_id": run.run_id,
        "seed": run.seed,
        "env_step": clock.env_steps,
        "update": clock.updates,
    }
    return write_module(agent.acting_module(), directory, formats, description, example)


def export_formats(
    definition: Definition, agent: TrainableAgent, *, exports_by_default: bool
) -> tuple[ExportFormat, ...]:
    """Returns the formats that the end of a training exports.

    They are those of its definition, else `weights` if the schedule exports by default and the
    agent can be exported.
    """
    can = getattr(agent, "exportable", True)
    return definition.export.formats or (("weights",) if exports_by_default and can else ())
