"""The recurrent states that an agent acts with: those of the training environments, and apart from
them those of an evaluation.
"""

import numpy as np
import numpy.typing as npt

from workers.core.types import Array, StateTree

States = npt.NDArray[np.float32]


class RecurrentState:
    """One state of S numbers for each of B environments; zeros where an episode begins.

    An agent that holds one takes it `before` each action and hands back the one `after` it. Where
    episodes of training end is said in `observe`, so such an agent collects one vector step at a
    time (`CollectPlan(vector_steps=1)`), and calls `training_ended` for each. Greedy actions leave
    all as it is: the state after one of them counts once the step was made, which
    `evaluation_stepped` says. The agent hears of it by its `observe_evaluation`; where nobody tells
    it, each greedy action is the first of an episode.

    Args:
        size: S.
        num_envs: B of the training environment.
    """

    def __init__(self, size: int, num_envs: int) -> None:
        self._size = size
        self._training: States = np.zeros((num_envs, size), np.float32)
        self._evaluation: States = np.zeros((0, size), np.float32)
        self._proposed: States | None = None

    def before(self, count: int, *, explore: bool) -> States:
        """Returns the states float32 [count, S] to act with, not to be written.

        Zeros where `count` is not the number of states kept.
        """
        kept = self._training if explore else self._evaluation
        return kept if len(kept) == count else np.zeros((count, self._size), np.float32)

    def after(self, states: Array, *, explore: bool) -> None:
        """Takes the states [count, S] that followed.

        Those of training only where there are as many as environments.
        """
        if not explore:
            self._proposed = states
        elif len(states) == len(self._training):
            self._training = states

    def training_ended(self, ended: npt.NDArray[np.bool_]) -> None:
        """Says in which training environments, bool [B], the episode ended with the last actions."""
        if ended.any():
            self._training = np.where(ended[:, np.newaxis], np.float32(0), self._training)

    def evaluation_stepped(self, reset: npt.NDArray[np.bool_]) -> None:
        """Says that the last greedy actions were carried out, and where, bool [B], the episode is
        over or given up with them.
        """
        if self._proposed is not None:
            self._evaluation, self._proposed = (
                np.where(reset[:, np.newaxis], np.float32(0), self._proposed),
                None,
            )

    def evaluation_begins(self) -> None:
        """Forgets what an earlier evaluation left."""
        self._evaluation, self._proposed = np.zeros((0, self._size), np.float32), None

    def state_dict(self) -> StateTree:
        """Returns the states of training; an evaluation does not outlive the snapshot."""
        return {"training": self._training}

    def load_state_dict(self, state: StateTree) -> None:
        """Brings the states of training to captured ones.

        Raises:
            ValueError: If they are of another network or of another number of environments.
        """
        stored = np.array(state["training"], np.float32)
        if stored.shape != self._training.shape:
            raise ValueError(
                f"the stored recurrent states of shape {stored.shape} do not fit those of shape {self._training.shape}"
            )
        self._training = stored
        self.evaluation_begins()
