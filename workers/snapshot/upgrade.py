"""Converts the state of older snapshots to the current format."""

from typing import Final

from workers.core.types import StateTree

_AGENT_ALGORITHM: Final = "workers.entrypoints.agent_algorithm:AgentAlgorithm"


def upgrade_state(state: StateTree, version: int) -> StateTree:
    """Returns the state in the current format.

    Args:
        state: State that was read from a snapshot; modified in place.
        version: Format version of that snapshot, at least 1.
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
    if version < 4:
        algorithm = state.get("recipe", {}).get("parts", {}).get("algo")
        if isinstance(algorithm, dict) and algorithm.get("$build") == _AGENT_ALGORITHM:
            algorithm["kwargs"]["scales_by_bounds"] = False
    return state
