"""Builds the parts of a training or an evaluation from its definition, and closes them.

Chooses the implementation of each protocol. The module contains no training loop and makes no
decisions about training.
"""

import functools
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import torch
from pydantic import TypeAdapter

from palestra.contract.definition import Definition, RlDefinition
from palestra.contract.identity import hash_definition
from palestra.contract.job_options import VIDEO_NEEDS_INLINE
from palestra.contract.names import CompileMode, EvaluationPolicy, Schedule
from palestra.contract.telemetry import SnapshotWritten
from palestra.contract.work_order import RunOrder, WorkOrder
from workers.assembly import rl_parts
from workers.assembly.cadence import cadence_for
from workers.assembly.packs import pack_sets
from workers.assembly.part_set import ClosableEvaluator, PartSet
from workers.core.errors import DefinitionError
from workers.core.protocols import AgentLoop, Control, Hook, TrainableAgent
from workers.core.shared_counter import SharedCount
from workers.core.types import JsonObject, RestoreReport
from workers.engine.engine import Engine
from workers.engine.parts import Parts
from workers.recording.recorder import RecordedRun, Sink, SpoolRecorder
from workers.recording.writer_thread import WriterThread
from workers.rl.evaluate.background_evaluator import SubprocessEvaluator
from workers.rl.evaluate.vector_evaluator import SeedRule, new_seed_rule
from workers.snapshot.attempt_store import SnapshotStore
from workers.snapshot.owner import snapshot_owner
from workers.snapshot.snapshot_directory import LoadedSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingContext:
    """The order, directories, record sink, control and device of one training."""

    order: WorkOrder
    run: RunOrder
    snapshots: Path
    """Directory of the snapshots."""
    videos: Path
    """Directory of the videos; created when there is one."""
    sink: Sink
    control: Control
    device: str
    scales_by_bounds: bool = True
    """That of the snapshot from which the training goes on; see `Manifest.scales_by_bounds`."""


@dataclass(slots=True)
class Training:
    """The assembled parts of a training; a context manager that closes them."""

    engine: Engine
    agent: TrainableAgent
    recorder: SpoolRecorder
    evaluation_progress: SharedCount
    """Vector steps, or batches, of all evaluations so far."""
    compile: CompileMode | None = None
    """How the agent's updates run; `None` of an agent that never compiles them."""
    own_loop: AgentLoop | None = None
    """The loop of an agent that trains by itself."""
    _open: ExitStack = field(default_factory=ExitStack)

    def resume(self, snapshot: LoadedSnapshot) -> RestoreReport:
        """Restores the training from a snapshot, and records a note on state that is not exact."""
        report = self.engine.restore(snapshot.state)
        for code, message in report.notes:
            self.recorder.record_note(code, message)
        return report

    def __enter__(self) -> Self:
        self.recorder.start()
        self._open.callback(self.recorder.close)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()


def assemble_training(context: TrainingContext) -> Training:
    """Returns a training that was built from the definition.

    All of its randomness is derived from the run's seed.

    Raises:
        DefinitionError: If the definition cannot be executed, for example because the agent does
            not support the action space.
        PartNotFoundError: If a part is not installed here.
    """
    with ExitStack() as stack:
        return _assemble(context, _build(context, stack), stack, WriterThread())


@dataclass(frozen=True, slots=True)
class PackTraining:
    """The trainings of several runs whose agents act and learn as one batch."""

    trainings: list[Training]
    leave: Callable[[int], None]
    """Must be called with the index of a training that ended, before another training continues."""


def assemble_pack(
    contexts: Sequence[TrainingContext], starts: Sequence[object], open_: ExitStack
) -> PackTraining:
    """Returns trainings of one definition and several seeds, one per seed.

    Their agents act and learn as one batch where they can.

    Args:
        contexts: One per run, of one work order.
        starts: Starting position of each run, hashable; only runs with equal ones are packed.
        open_: Stack that closes all parts.

    Raises:
        DefinitionError: If the definition cannot be executed.
        PartNotFoundError: If a part is not installed here.
    """
    sets = [_build(context, open_, len(contexts)) for context in contexts]
    together = pack_sets(sets, starts)
    trainings, writer = [], WriterThread()
    for context, parts in zip(contexts, together.sets, strict=True):
        with ExitStack() as stack:
            trainings.append(open_.enter_context(_assemble(context, parts, stack, writer)))
    return PackTraining(trainings, together.leave)


def _assemble(
    context: TrainingContext, parts: PartSet, stack: ExitStack, writer: WriterThread
) -> Training:
    definition, run = context.order.definition, context.run
    progress = SharedCount()
    evaluator = _training_evaluator(context, parts.agent, progress)
    stack.callback(evaluator.close)
    recorded = RecordedRun(
        run.run_id, parts.agent.report_names, parts.agent.metrics, parts.window_env_steps
    )
    recorder = SpoolRecorder(recorded, context.sink, writer=writer)
    owner = snapshot_owner(
        run_id=run.run_id,
        attempt_id=context.order.attempt_id,
        experiment_id=context.order.experiment_id,
        definition_hash=hash_definition(definition),
        seed=run.seed,
        parent=run.snapshot.snapshot_id if run.snapshot else None,
        device=context.device,
        is_exact=parts.resume_exact,
        scales_by_bounds=context.scales_by_bounds,
    )
    store = SnapshotStore(
        context.snapshots,
        owner,
        keep_last=definition.snapshot.keep_last,
        announce=_announcer(recorder),
    )
    engine_parts = Parts(
        agent=parts.agent,
        collector=parts.collector,
        recorder=recorder,
        snapshotter=store,
        control=context.control,
        evaluator=evaluator,
        hooks=(*parts.hooks, *_video_hooks(context, parts.agent, stack)),
    )
    cadence = cadence_for(context.order.schedule, parts.cadence)
    return Training(
        Engine(engine_parts, cadence, time.monotonic),
        parts.agent,
        recorder,
        progress,
        parts.compile,
        parts.own_loop,
        stack.pop_all(),
    )


def load_agent(
    definition: Definition, seed: int, snapshot: LoadedSnapshot, device: str
) -> TrainableAgent:
    """Returns the agent or supervised model of a snapshot, without its memory."""
    scales_by_bounds = snapshot.manifest.scales_by_bounds
    agent = fresh_agent(definition, seed, device, scales_by_bounds=scales_by_bounds)
    agent.load_state_dict(snapshot.state["agent"])
    return agent


def fresh_agent(
    definition: Definition, seed: int, device: str, *, scales_by_bounds: bool = True
) -> TrainableAgent:
    """Returns an untrained agent or supervised model.

    Args:
        definition: Definition of the training.
        seed: The run's seed.
        device: A torch device.
        scales_by_bounds: That of the snapshot whose state the agent loads; see
            `Manifest.scales_by_bounds`.
    """
    if isinstance(definition, RlDefinition):
        return rl_parts.fresh_agent(definition, seed, device, scales_by_bounds=scales_by_bounds)
    from workers.assembly import supervised_parts

    return supervised_parts.Model(definition, seed, device)


def build_evaluator(
    definition: Definition,
    agent: TrainableAgent,
    seeds: SeedRule,
    episodes: int | None = None,
    progress: SharedCount | None = None,
    *,
    policy: EvaluationPolicy | None = None,
) -> ClosableEvaluator:
    """Returns an evaluator that owns its environments or inputs.

    Args:
        definition: Defines the data and the budget of an evaluation.
        agent: The agent or supervised model to evaluate.
        seeds: Determines the seeds of the episodes.
        episodes: Number of whole episodes, or of batches for a supervised definition; `None` for
            the definition's budget.
        progress: Counts vector steps, or batches.
        policy: The actions; `None` takes those of the definition. A supervised one has none.

    Raises:
        DefinitionError: If actions are to be drawn and there is no policy, or a deterministic one.
    """
    if isinstance(definition, RlDefinition):
        return rl_parts.build_evaluator(definition, agent, seeds, episodes, progress, policy=policy)
    if policy is not None:
        raise DefinitionError("evaluate.policy: a supervised run has no policy: leave it out")
    from workers.assembly import supervised_parts

    return supervised_parts.build_evaluator(definition, agent, seeds, episodes, progress)


def build_train_data_evaluator(
    definition: Definition,
    agent: TrainableAgent,
    seed: int,
    episodes: int | None = None,
    progress: SharedCount | None = None,
) -> ClosableEvaluator:
    """Returns an evaluator on the first training data of the run with this seed.

    See `build_evaluator`.
    """
    if isinstance(definition, RlDefinition):
        return rl_parts.build_train_data_evaluator(definition, agent, seed, episodes, progress)
    from workers.assembly import supervised_parts

    return supervised_parts.build_train_data_evaluator(definition, agent, seed, episodes, progress)


def describe_acting(
    definition: Definition, agent: TrainableAgent
) -> tuple[JsonObject, tuple[torch.Tensor, ...]]:
    """Returns the description of an export's interface and example inputs [2, ...].

    The inputs are those with which the acting module is traced.
    """
    if isinstance(definition, RlDefinition):
        return rl_parts.describe_acting(definition)
    from workers.assembly import supervised_parts

    return supervised_parts.describe_acting(definition, agent)


def _training_evaluator(
    context: TrainingContext, agent: TrainableAgent, progress: SharedCount
) -> ClosableEvaluator:
    definition, seed = context.order.definition, context.run.seed
    if context.order.schedule is Schedule.TEST:
        return build_evaluator(definition, agent, new_seed_rule(seed), 1, progress)
    if context.order.resources.evaluation == "process":
        return SubprocessEvaluator(
            functools.partial(
                _build_in_subprocess,
                definition.model_dump_json(),
                seed,
                progress,
                scales_by_bounds=context.scales_by_bounds,
            ),
            agent,
        )
    return build_evaluator(definition, agent, new_seed_rule(seed), progress=progress)


def _build_in_subprocess(
    document: str, seed: int, progress: SharedCount, *, scales_by_bounds: bool
) -> tuple[TrainableAgent, ClosableEvaluator]:
    """Builds agent and evaluator in the process of the background evaluator."""
    definition: Definition = TypeAdapter(Definition).validate_json(document)
    agent = fresh_agent(definition, seed, "cpu", scales_by_bounds=scales_by_bounds)
    return agent, build_evaluator(definition, agent, new_seed_rule(seed), progress=progress)


def _video_hooks(
    context: TrainingContext, agent: TrainableAgent, stack: ExitStack
) -> tuple[Hook, ...]:
    definition = context.order.definition
    if not isinstance(definition, RlDefinition) or context.order.schedule is Schedule.TEST:
        return ()
    from workers.assembly.video_hooks import build_video_hooks

    hooks = build_video_hooks(definition, agent, context.videos, stack)
    if hooks and context.order.resources.evaluation == "process":
        raise DefinitionError(VIDEO_NEEDS_INLINE)
    return hooks


def _build(context: TrainingContext, stack: ExitStack, runs: int = 1) -> PartSet:
    definition, seed, device = context.order.definition, context.run.seed, context.device
    if isinstance(definition, RlDefinition):
        return rl_parts.build_set(
            definition,
            seed,
            device,
            stack,
            context.order.resources,
            runs=runs,
            scales_by_bounds=context.scales_by_bounds,
        )
    from workers.assembly import supervised_parts

    return supervised_parts.build_set(definition, seed, device)


def _announcer(recorder: SpoolRecorder) -> Callable[[SnapshotWritten], None]:
    def announce(written: SnapshotWritten) -> None:
        recorder.emit(written)
        recorder.flush()

    return announce
