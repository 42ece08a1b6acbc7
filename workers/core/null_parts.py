"""Parts that are not there: what stands in their place says and does nothing."""

from workers.core.types import StateTree, StopReason


class NoMemory:
    """The memory of a learner that keeps its data to itself, or keeps none."""

    capacity = 0

    def __len__(self) -> int:
        return 0

    def state_dict(self) -> StateTree:
        """Returns nothing."""
        return {}

    def load_state_dict(self, state: StateTree) -> None:
        """Takes nothing over."""


class NoOrders:
    """The control of a training that nobody outside stops."""

    order: StopReason | None = None

    def acknowledge(self, reason: StopReason) -> None:
        """Does nothing."""
