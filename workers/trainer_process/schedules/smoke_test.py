"""The schedule `test`: one update, one evaluation, and one snapshot that is read back.

Its records are not part of the run's history.
"""

from typing import Final

from palestra.contract.names import EvaluationSource
from palestra.contract.telemetry import Evaluation, Note, RunRecord
from workers.assembly.training import Training
from workers.core.errors import DefinitionError
from workers.core.types import CollectPlan
from workers.engine.parts import RunResult
from workers.recording.recorder import Sink
from workers.trainer_process.schedules import agent_driven

MAX_ENV_STEPS: Final = 1_000_000
"""env_steps in which an agent must make its first update."""


class SmokeTestSink:
    """A sink that forwards only notes and evaluations, which it marks as those of a test.

    All other records would be part of the run's training history.

    Args:
        sink: Receives the notes and evaluations.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def append(self, records: list[RunRecord]) -> int:
        """Appends the records that the test may write, and drops the others."""
        kept = [_mark_record(record) for record in records if isinstance(record, Evaluation | Note)]
        return self._sink.append(kept) if kept else 0


def run_smoke_test(training: Training) -> RunResult:
    """Collects until the agent makes its first update, then evaluates and saves.

    The env_steps of the agent's warm-up are collected too.

    An agent that learns by itself, and so reports no update, gets one episode. An agent whose
    processes learn while they collect gets one env_step at a time, so that it makes one update too.
    An agent with its own loop continues until it has learned, at most for its whole budget.

    Args:
        training: Assembled for the schedule `test`: its budget is one update.

    Raises:
        DefinitionError: If the agent makes no update.
    """
    if training.own_loop is not None:
        return agent_driven.run(training.engine, training.own_loop)
    engine, tried = training.engine, False
    by_itself = getattr(engine.agent, "learns_by_itself", False)
    plan = (
        CollectPlan(vector_steps=1)
        if getattr(engine.agent, "learns_as_it_gathers", False)
        else None
    )
    for _ in engine.epochs(1):
        while not tried:
            engine.agent.observe(engine.collect(plan))
            engine.learn(1)
            tried = engine.clock.updates > 0 or (by_itself and engine.clock.episodes > 0)
            if not tried and engine.clock.env_steps >= MAX_ENV_STEPS:
                raise DefinitionError(
                    f"the agent made no update within {MAX_ENV_STEPS:,} env_steps: see "
                    "agent.batch_size and buffer_size"
                )
    return engine.result


def _mark_record(record: RunRecord) -> RunRecord:
    if isinstance(record, Evaluation):
        return record.model_copy(update={"source": EvaluationSource.TEST, "final": False})
    return record
