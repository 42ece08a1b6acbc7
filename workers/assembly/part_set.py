"""The set of parts that depend on the kind of definition: reinforcement or supervised learning."""

from dataclasses import dataclass
from typing import Protocol

from palestra.contract.names import CompileMode
from workers.core.protocols import AgentLoop, Collector, Evaluator, Hook, TrainableAgent
from workers.engine.parts import Cadence


class ClosableEvaluator(Evaluator, Protocol):
    """An evaluator that owns its environments or inputs and closes them."""

    def close(self) -> None:
        """Closes the environments or inputs that the evaluator owns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSet:
    """The parts that depend on the kind of definition."""

    agent: TrainableAgent
    collector: Collector
    hooks: tuple[Hook, ...]
    cadence: Cadence
    window_env_steps: int
    """Length of the recorder's windows."""
    resume_exact: bool
    """Whether parts and settings allow a bit-exact resume on a CPU."""
    compile: CompileMode | None = None
    """How the agent's updates run; `None` of an agent that never compiles them."""
    own_loop: AgentLoop | None = None
    """The loop of an agent that trains by itself; `None` where the engine's is the only one."""
