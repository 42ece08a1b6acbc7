"""Saves and restores the states of all parts of a run as one tree."""

from workers.core.rng import global_state, load_global_state
from workers.core.types import RestoreReport, StateTree
from workers.engine.clock import Clock
from workers.engine.hook_calls import HookCalls
from workers.engine.parts import Parts

_NO_MEMORY = (
    "resume_statistical",
    "The snapshot holds no replay memory: it fills again before learning goes on.",
)


def states_of(parts: Parts, clock: Clock, hooks: HookCalls, loop: StateTree) -> StateTree:
    """Returns the states of all parts except the agent's memory.

    Args:
        parts: The parts; their states may refer to live arrays, see `Stateful`.
        clock: The engine's clock.
        hooks: The engine's hooks.
        loop: The state of the engine itself.
    """
    return {
        "clock": clock.state_dict(),
        "loop": loop,
        "agent": parts.agent.state_dict(),
        "collector": parts.collector.state_dict(),
        "recorder": parts.recorder.state_dict(),
        "hooks": hooks.state(),
        "rng": global_state(),
    }


def restore_parts(parts: Parts, hooks: HookCalls, state: StateTree) -> RestoreReport:
    """Restores freshly built parts and the global random generators.

    Returns:
        Whether the resumed run can be exact, and what prevents it.
    """
    parts.agent.load_state_dict(state["agent"])
    if "memory" in state:
        parts.agent.memory.load_state_dict(state["memory"])
    environments = parts.collector.restore(state["collector"])
    parts.recorder.load_state_dict(state["recorder"])
    hooks.load_state(state["hooks"])
    load_global_state(state["rng"])
    notes = () if "memory" in state else (_NO_MEMORY,)
    return RestoreReport(
        is_exact=environments.is_exact and not notes, notes=(*notes, *environments.notes)
    )
