"""Drives the engine from within the training loop of an agent that trains by itself.

All other agents are trained by the loop of the engine.

Between two steps of the agent's loop the engine's `ticks` is advanced, so that the order of an
iteration is that of the engine: the collected env_steps are counted, the updates are reported, and
the boundary follows. No thread is used.
"""

from workers.core.errors import DefinitionError
from workers.core.protocols import AgentLoop, ClockView
from workers.engine.engine import Engine
from workers.engine.parts import RunResult


def run(engine: Engine, loop: AgentLoop) -> RunResult:
    """Trains until the budget, a stop condition or an order.

    Args:
        engine: Engine whose collector the loop steps.
        loop: Called with a function that it calls between two of its steps; returns once that
            function returns false, or once it has made all its steps.

    Raises:
        DefinitionError: If the loop made all its steps and the training is not at its end.
        Exception: Whatever the loop or a part raised, after a snapshot with the reason `exception`.
    """
    ticks = engine.ticks()

    def advance() -> bool:
        next(ticks, None)
        if engine.is_stopping:
            next(ticks, None)
        return not engine.is_stopping

    if advance():
        try:
            loop(advance)
            _check_over(engine.clock, is_over=not advance())
        # The engine saves the state, then the error goes on its way.
        except BaseException as error:  # noqa: BLE001
            engine.collect()
            ticks.throw(error)
    return engine.result


def _check_over(clock: ClockView, *, is_over: bool) -> None:
    if not is_over:
        raise DefinitionError(
            f"the agent's own loop ended after {clock.env_steps:,} env_steps and {clock.updates:,} "
            "updates, before the job did: "
            "its first update must come before loop.env_steps, see learning_starts and n_steps in "
            "agent.parameters"
        )
