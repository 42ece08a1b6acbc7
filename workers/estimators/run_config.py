"""The configuration of an estimator or agent: seed, device, checkpoints, logs and cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

MASTER: Final = "master"
WORKER: Final = "worker"
PARAMETER_SERVER: Final = "ps"
_CHIEFS: Final = frozenset({MASTER, "chief"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """Configuration of one process that trains or evaluates.

    Raises:
        ValueError: If a number is negative, or more than one interval of checkpoints is set.
    """

    model_dir: str | None = None
    """Directory of checkpoints, results and exports; `None` for a new temporary directory."""
    seed: int = 0
    """Seed of all random generators of the training."""
    device: str = "cpu"
    """A torch device."""
    save_checkpoints_steps: int | None = None
    """Updates between two checkpoints; 0 disables this interval, see `saves_checkpoints`."""
    save_checkpoints_secs: float | None = None
    """Seconds between two checkpoints.

    If no interval is set, an estimator saves every 600 seconds.
    """
    save_checkpoints_episodes: int | None = None
    """Episodes between two checkpoints.

    If no interval is set, an agent saves after the number of episodes in
    `Agent.episodes_between_logs`.
    """
    keep_checkpoint_max: int | None = 5
    """Number of newest checkpoints to keep; `None` or 0 keeps all."""
    save_summary_steps: int = 100
    """Updates between two rows of summaries; an agent also writes rows at ends of episodes.

    0 writes no rows at all.
    """
    log_step_count_steps: int = 100
    """Updates between two lines of the log; an agent also writes lines at ends of episodes.

    0 writes no lines at all.
    """
    tensorboard: bool = False
    """Whether summaries and results are also written as TensorBoard events."""
    max_episode_steps: int | None = None
    """Time limit of an agent's episodes in env_steps, in addition to the environment's own.

    An episode that reaches it is truncated.
    """
    cluster: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """`host:port` of each task by task type: `master`, `worker`, `ps`."""
    task_type: str | None = None
    """Type of this process's task: `master`, `chief`, `worker` or `ps`."""
    task_id: int | None = None
    """Index of this process among the tasks of its type, from 0."""
    master: str | None = None
    """`host:port` of the server that holds the shared global step."""

    def __post_init__(self) -> None:
        cadences = ("save_checkpoints_steps", "save_checkpoints_secs", "save_checkpoints_episodes")
        for name in (
            *cadences,
            "keep_checkpoint_max",
            "save_summary_steps",
            "log_step_count_steps",
            "task_id",
        ):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"RunConfig: {name} must not be negative, is {value}")
        if sum(bool(getattr(self, name)) for name in cadences) > 1:
            raise ValueError(f"RunConfig: set one of {', '.join(cadences)}, not several")

    @property
    def saves_checkpoints(self) -> bool:
        """Whether checkpoints are written.

        False if one interval is 0 and no other interval is set.
        """
        given = [
            self.save_checkpoints_steps,
            self.save_checkpoints_secs,
            self.save_checkpoints_episodes,
        ]
        return all(value is None for value in given) or any(given)

    @property
    def is_distributed(self) -> bool:
        """Whether `cluster` and `master` are set, and `master` is not `local`."""
        return bool(self.cluster) and bool(self.master) and self.master != "local"

    @property
    def is_chief(self) -> bool:
        """Whether this process writes the checkpoints.

        True for a single process, for the master, and for the first worker if there is no master.
        """
        if not self.cluster or self.task_type is None or self.task_type in _CHIEFS:
            return True
        return self.task_type == WORKER and not self.task_id and not _CHIEFS & set(self.cluster)

    def require_cluster(self) -> None:
        """Raises ValueError if a setting that a server needs is missing or inconsistent."""
        missing = [name for name in ("cluster", "task_type", "master") if not getattr(self, name)]
        missing += ["task_id"] if self.task_id is None else []
        if missing:
            raise ValueError(f"RunConfig: {', '.join(missing)} must be set to start a server")
        if not 0 <= (self.task_id or 0) < len(self.cluster.get(self.task_type or "", ())):
            raise ValueError(
                f"RunConfig: the cluster lists no task {self.task_id} of type {self.task_type!r}"
            )
