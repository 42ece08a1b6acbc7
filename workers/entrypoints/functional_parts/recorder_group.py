"""A recorder that forwards every call to several recorders."""

from collections.abc import Mapping, Sequence

from workers.core.protocols import ClockView, Recorder
from workers.core.types import EpisodeEnd, EvaluationResult, LearnReport, StateTree


class RecorderGroup:
    """Forwards every call to each of its members, in the order of `members`.

    Args:
        members: Recorders by name. Their states are saved under these names; a recorder whose name
            is not in a snapshot keeps its initial state.
    """

    def __init__(self, members: Mapping[str, Recorder]) -> None:
        self._named = dict(members)
        self._members = tuple(self._named.values())

    def record_iteration(
        self,
        clock: ClockView,
        episodes: Sequence[tuple[int, EpisodeEnd]],
        reports: Sequence[LearnReport],
    ) -> None:
        """Passes the episodes and updates of one iteration to each member."""
        for member in self._members:
            member.record_iteration(clock, episodes, reports)

    def record_evaluation(
        self, clock: ClockView, result: EvaluationResult, *, is_final: bool
    ) -> None:
        """Passes an evaluation to each member."""
        for member in self._members:
            member.record_evaluation(clock, result, is_final=is_final)

    def record_epoch(self, clock: ClockView) -> None:
        """Passes the end of an epoch to each member."""
        for member in self._members:
            member.record_epoch(clock)

    def record_note(self, code: str, message: str) -> None:
        """Passes a notice to each member."""
        for member in self._members:
            member.record_note(code, message)

    def flush(self) -> None:
        """Flushes each member."""
        for member in self._members:
            member.flush()

    def state_dict(self) -> StateTree:
        """Returns the state of each member by its name."""
        return {name: member.state_dict() for name, member in self._named.items()}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the state of each member whose name is in `state`."""
        for name, member in self._named.items():
            if name in state:
                member.load_state_dict(state[name])
