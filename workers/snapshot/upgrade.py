"""Brings the state of older snapshots to the present format."""

from workers.core.types import StateTree


def upgraded(state: StateTree, version: int) -> StateTree:
    """Returns the state as the present format has it.

    Args:
        state: As it was read; it is changed.
        version: Format that it was written in, from 1 on.
    """
    if version < 2 and "loop" in state:
        loop = state["loop"]
        loop["evaluations"] = {
            "trigger": loop.pop("evaluation"),
            "pending": loop.pop("evaluation_pending"),
            "score": loop.pop("score"),
            "at": loop.pop("evaluated_at"),
        }
        loop["learning"]["warmup_end"] = loop.pop("warmup_end")
    return state
