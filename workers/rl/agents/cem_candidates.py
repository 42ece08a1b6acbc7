"""Returns of the candidates of one generation, and the candidate of each environment.

P candidates, B environments, T vector steps.
"""

import numpy as np
import numpy.typing as npt

from workers.core.types import Array, StateTree


class Candidates:
    """The memory of an agent that ranks candidates by the returns of whole episodes.

    An environment keeps its candidate until one of its episodes ends with the last step of a
    collect; it is then assigned the next candidate in turn, after the last one the first again.
    Episodes beyond the required number count too.

    Args:
        count: Number of candidates, P.
        episodes: Minimum number of episodes of each candidate.
        num_envs: Number of environments, B.
    """

    def __init__(self, count: int, episodes: int, num_envs: int) -> None:
        self._count, self._episodes = count, episodes
        self._returns = np.zeros(num_envs, np.float64)
        """float64 [B]: sum of the rewards so far of each episode in progress."""
        self._midway = np.zeros(num_envs, np.bool_)
        """bool [B]: whether an episode is in progress."""
        self.begin()

    def begin(self) -> None:
        """Begins a generation; episodes in progress are not counted for any candidate."""
        self._totals = np.zeros(self._count, np.float64)
        self._played = np.zeros(self._count, np.int64)
        self._begun_before = self._midway.copy()
        self._given = 0
        self.assigned = self._next(len(self._midway))
        """Index of each environment's candidate, int64 [B]; replaced, never modified in place."""

    @property
    def capacity(self) -> int:
        """Number of episodes that complete a generation."""
        return self._count * self._episodes

    def __len__(self) -> int:
        """Returns the number of episodes of this generation that ended."""
        return int(self._played.sum())

    @property
    def is_complete(self) -> bool:
        """Whether every candidate has played its episodes."""
        return bool((self._played >= self._episodes).all())

    @property
    def scores(self) -> npt.NDArray[np.float64]:
        """Mean return of each candidate, float64 [P]; only where `is_complete`."""
        return self._totals / self._played

    def extend(self, reward: Array, ended: Array, active: Array | None) -> None:
        """Adds rewards to the returns, and assigns new candidates to environments.

        Args:
            reward: [T, B].
            ended: bool [T, B]: the episode ended with this step.
            active: bool [T, B]: false for inactive slots; `None` if all slots are active.
        """
        over = [
            self._add_steps(slot, *_rows(reward, ended, active, slot))
            for slot in range(len(self._midway))
        ]
        if any(over):
            assigned = self.assigned.copy()
            assigned[over] = self._next(sum(over))
            self.assigned = assigned

    def state_dict(self) -> StateTree:
        """Returns the totals of the generation, assignments and episodes in progress."""
        return {
            "totals": self._totals,
            "played": self._played,
            "assigned": self.assigned,
            "given": self._given,
            "returns": self._returns,
            "midway": self._midway,
            "foreign": self._begun_before,
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the generation from `state`.

        Raises ValueError if the number of candidates or environments differs.
        """
        if len(state["totals"]) != self._count or len(state["midway"]) != len(self._midway):
            raise ValueError(
                f"the stored generation is of {len(state['totals'])} candidates in "
                f"{len(state['midway'])} environments, "
                f"this one of {self._count} in {len(self._midway)}: resume with the same definition"
            )
        self._totals, self._played = (
            np.array(state["totals"], np.float64),
            np.array(state["played"], np.int64),
        )
        self.assigned, self._given = np.array(state["assigned"], np.int64), int(state["given"])
        self._returns, self._midway = (
            np.array(state["returns"], np.float64),
            np.array(state["midway"], np.bool_),
        )
        self._begun_before = np.array(state["foreign"], np.bool_)

    def _add_steps(self, slot: int, rewards: Array, ended: Array) -> bool:
        """Adds the steps of one environment to the returns of its candidate.

        Returns whether an episode ended with the last step.
        """
        if not len(rewards):
            return False
        *finished, rest = np.split(rewards, np.flatnonzero(ended) + 1)
        candidate = self.assigned[slot]
        for part in finished:
            if not self._begun_before[slot]:
                self._totals[candidate] += self._returns[slot] + part.sum()
                self._played[candidate] += 1
            self._begun_before[slot], self._returns[slot] = False, 0.0
        self._returns[slot] += rest.sum()
        self._midway[slot] = not ended[-1]
        return bool(ended[-1])

    def _next(self, count: int) -> npt.NDArray[np.int64]:
        self._given += count
        return np.arange(self._given - count, self._given) % self._count


def _rows(reward: Array, ended: Array, active: Array | None, slot: int) -> tuple[Array, Array]:
    if active is None:
        return reward[:, slot], ended[:, slot]
    return reward[active[:, slot], slot], ended[active[:, slot], slot]
