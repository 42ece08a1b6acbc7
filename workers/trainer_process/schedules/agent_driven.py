"""Drives the engine from within the training loop of an agent that trains by itself.

It is the one loop that is not the engine's.

The engine's `ticks` is advanced from between two steps of that loop, so the order of an iteration
stays the engine's: what the agent collected is counted, what it learnt is reported, and the
boundary follows. No second order, no thread.
"""

from workers.core.errors import DefinitionError
from workers.core.protocols import ClockView, OwnLoop
from workers.engine.engine import Engine
from workers.engine.parts import RunResult


def run(engine: Engine, loop: OwnLoop) -> RunResult:
    """Trains until the budget, a stop condition or an order.

    Args:
        engine: With the collector that the loop steps.
        loop: Calls what it is given between two steps, and returns where that says false, or once
            it has made all steps.

    Raises:
        DefinitionError: If the loop made all its steps and the engine still waits for something.
        Exception: Whatever the loop or a part raised, after a snapshot with the reason `exception`.
    """
    ticks = engine.ticks()

    def advance() -> bool:
        next(ticks, None)
        if engine.stopping:
            next(ticks, None)
        return not engine.stopping

    if advance():
        try:
            loop(advance)
            _check_over(engine.clock, over=not advance())
        # The engine saves the state, then the error goes on its way.
        except BaseException as error:  # noqa: BLE001
            engine.collect()
            ticks.throw(error)
    return engine.result


def _check_over(clock: ClockView, *, over: bool) -> None:
    if not over:
        raise DefinitionError(
            f"the agent's own loop ended after {clock.env_steps:,} env_steps and {clock.updates:,} "
            "updates, before the job did: "
            "its first update must come before loop.env_steps, see learning_starts and n_steps in "
            "agent.parameters"
        )
