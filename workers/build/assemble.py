"""Builds the parts of a training or an evaluation from its definition, and closes them.

The one place that knows which implementation stands behind each protocol. Holds no loop and decides nothing about training.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from palestra.contract.definition import Definition, LearningRateSchedule, NanGuard, definition_hash
from palestra.contract.telemetry import SnapshotWritten
from palestra.contract.work_order import RunOrder, WorkOrder
from workers.build.registry import agent_factory
from workers.build.runtime import device_name, versions
from workers.collect.collector import VectorCollector
from workers.core.protocols import Agent, Control, Hook
from workers.core.types import AgentContext, RestoreReport, Unit
from workers.envs.make import make_vector
from workers.envs.vector import EpisodeVector
from workers.evaluate.evaluator import EvaluationBudget, SeedRule, VectorEvaluator, training_seeds
from workers.hooks.guards import NanGuardHook, SuccessHook
from workers.hooks.schedules import LearningRateHook
from workers.loop.budget import Budget
from workers.loop.engine import Engine
from workers.loop.parts import Cadence, Parts
from workers.record.recorder import RecordedRun, Sink, SpoolRecorder
from workers.record.windows import window_length
from workers.snapshot.store import SnapshotStore
from workers.snapshot.writing import LoadedSnapshot, SnapshotOwner

EVALUATION_ENVS = 8
"""Most copies of the evaluation environment that are stepped together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingContext:
    """Where one training takes place."""

    order: WorkOrder
    run: RunOrder
    snapshots: Path
    """Directory of the snapshots."""
    sink: Sink
    control: Control
    device: str


@dataclass(slots=True)
class Training:
    """Parts ready to run. Use it as a context: leaving it closes them all."""

    engine: Engine
    agent: Agent
    recorder: SpoolRecorder
    _open: ExitStack = field(default_factory=ExitStack)

    def resume(self, snapshot: LoadedSnapshot) -> RestoreReport:
        """Goes on from a snapshot, and notes what could not be restored."""
        report = self.engine.restore(snapshot.state)
        for code, message in report.notes:
            self.recorder.note(code, message)
        return report

    def __enter__(self) -> Self:
        self.recorder.start()
        self._open.callback(self.recorder.close)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()


def assemble_training(context: TrainingContext) -> Training:
    """Returns a training whose parts were built from the definition and derive all randomness from the run's seed.

    Raises:
        DefinitionError: If the definition cannot be carried out, say for an agent that does not fit the action space.
        PartNotFoundError: If a part is not to be had here.
    """
    definition, seed = context.order.definition, context.run.seed
    with ExitStack() as stack:
        env = _opened(stack, make_vector(definition.env))
        agent = build_agent(definition, env, seed, context.device)
        evaluator = build_evaluator(definition, agent, training_seeds(seed))
        stack.callback(evaluator.close)
        recorder = SpoolRecorder(_recorded(definition, context.run, agent), context.sink)
        store = SnapshotStore(context.snapshots, _owner(context), keep_last=definition.snapshot.keep_last, announce=_announcer(recorder))
        parts = Parts(
            agent=agent,
            collector=VectorCollector(env, agent, seed),
            recorder=recorder,
            snapshotter=store,
            control=context.control,
            evaluator=evaluator,
            hooks=build_hooks(definition, agent),
        )
        return Training(Engine(parts, cadence_of(definition), time.monotonic), agent, recorder, stack.pop_all())


def build_agent(definition: Definition, env: EpisodeVector, seed: int, device: str) -> Agent:
    """Returns a fresh agent of the definition for an environment's spaces."""
    context = AgentContext(
        observation_space=env.single_observation_space,
        action_space=env.single_action_space,
        num_envs=definition.env.num_envs,
        seed=seed,
        device=device,
    )
    return agent_factory(definition.agent.name)(definition.agent, context)


def build_evaluator(definition: Definition, agent: Agent, seeds: SeedRule, episodes: int | None = None) -> VectorEvaluator:
    """Returns an evaluator with an environment of its own.

    Args:
        definition: Says what an evaluation is.
        agent: Acts.
        seeds: Where the episodes' seeds come from.
        episodes: Whole episodes; `None` takes the definition's budget.
    """
    spec = definition.evaluation
    budget = EvaluationBudget(episodes=episodes) if episodes else EvaluationBudget(episodes=spec.episodes, steps=spec.steps)
    most = EVALUATION_ENVS if definition.env.vectorization == "sync" else definition.env.num_envs
    env = make_vector(definition.env, min(budget.episodes or 1, most), spec.max_episode_steps)
    return VectorEvaluator(env, agent, budget, seeds)


def build_hooks(definition: Definition, agent: Agent) -> tuple[Hook, ...]:
    """Returns the definition's hooks in its order, then the success score."""
    hooks: list[Hook] = []
    for spec in definition.hooks:
        match spec:
            case NanGuard():
                hooks.append(NanGuardHook(agent.report_names, spec.updates))
            case LearningRateSchedule():
                hooks.append(LearningRateHook(definition.agent.learning_rate, spec.final_value, spec.env_steps))
    if definition.stop.success_score is not None:
        hooks.append(SuccessHook(definition.stop.success_score, definition.stop.success_evaluations))
    return tuple(hooks)


def cadence_of(definition: Definition) -> Cadence:
    """Returns when the engine does what."""
    loop = definition.loop
    return Cadence(
        budget=Budget({Unit.ENV_STEPS: loop.env_steps, Unit.UPDATES: loop.updates, Unit.EPISODES: loop.episodes}),
        epoch=loop.epoch_env_steps,
        evaluation=definition.evaluation.every_env_steps,
        evaluate_during_episode=definition.evaluation.during_episode,
        snapshot=definition.snapshot.every_env_steps,
        save_best=definition.snapshot.keep_best,
        save_memory=definition.snapshot.memory == "full",
    )


def _opened(stack: ExitStack, env: EpisodeVector) -> EpisodeVector:
    stack.callback(env.close)
    return env


def _recorded(definition: Definition, run: RunOrder, agent: Agent) -> RecordedRun:
    return RecordedRun(run.run_id, agent.report_names, agent.metrics, window_length(definition.loop.env_steps))


def _owner(context: TrainingContext) -> SnapshotOwner:
    definition, run = context.order.definition, context.run
    return SnapshotOwner(
        run_id=run.run_id,
        attempt_id=context.order.attempt_id,
        experiment_id=context.order.experiment_id,
        definition_hash=definition_hash(definition),
        seed=run.seed,
        parent=run.snapshot.snapshot_id if run.snapshot else None,
        versions=versions(),
        device=device_name(context.device),
        resume_exact=context.device == "cpu" and definition.snapshot.memory == "full",
    )


def _announcer(recorder: SpoolRecorder) -> Callable[[SnapshotWritten], None]:
    def announce(written: SnapshotWritten) -> None:
        recorder.emit(written)
        recorder.flush()

    return announce
