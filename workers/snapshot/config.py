"""Which epochs are kept as snapshots, and under which names: garage's snapshot modes.

| mode | directories | rule |
|---|---|---|
| `last` | `params` | every epoch, in place of the one before |
| `all` | `itr_<e>` | every epoch |
| `gap` | `itr_<e>` | where the epoch is a multiple of the gap, 0 included |
| `gap_overwrite` | `params` | the same, in place of the one before |
| `gap_and_last` | both | `itr_<e>` as in `gap`, `params` every epoch |
| `none` | - | nothing |

After an exception the directory is `exception`, in any mode but `none`.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from workers.core.counts import check_count

MODES: Final = ("last", "all", "gap", "gap_overwrite", "gap_and_last", "none")
PARAMS: Final = "params"
EXCEPTION: Final = "exception"
_PREFIX: Final = "itr_"


@dataclass(frozen=True, slots=True)
class SnapshotConfig:
    """The directory of snapshots and the rule by which old ones are deleted.

    Raises:
        ValueError: If the mode is unknown, or the gap does not fit it.
    """

    snapshot_dir: str | os.PathLike[str] = "data/local/experiment"
    """Directory of the snapshots; created with the first one."""
    snapshot_mode: str = "last"
    """See the module."""
    snapshot_gap: int = 1
    """In epochs; 1 in mode `last`, more than 1 in mode `gap_overwrite`."""

    def __post_init__(self) -> None:
        if self.snapshot_mode not in MODES:
            raise ValueError(
                f"snapshot_mode must be one of {', '.join(MODES)}, not {self.snapshot_mode!r}"
            )
        object.__setattr__(self, "snapshot_gap", check_count(self.snapshot_gap, "snapshot_gap", 1))
        if self.snapshot_mode == "last" and self.snapshot_gap != 1:
            raise ValueError(
                f"snapshot_gap must be 1 in mode 'last', not {self.snapshot_gap}: mode "
                "'gap_overwrite' keeps the last of every gap"
            )
        if self.snapshot_mode == "gap_overwrite" and self.snapshot_gap == 1:
            raise ValueError(
                "snapshot_gap must be more than 1 in mode 'gap_overwrite': mode 'last' keeps the "
                "last of every epoch"
            )

    @classmethod
    def from_object(cls, config: Any) -> Self:
        """Returns a config from any object with `snapshot_dir`, `snapshot_mode` and `snapshot_gap`.

        `None` is the default one.

        Raises:
            TypeError: If an attribute is missing.
            ValueError: If mode or gap are wrong.
        """
        if config is None or isinstance(config, cls):
            return config or cls()
        try:
            return cls(config.snapshot_dir, config.snapshot_mode, config.snapshot_gap)
        except AttributeError as error:
            message = (
                "snapshot_config must have snapshot_dir, snapshot_mode and snapshot_gap; "
                f"{type(config).__name__} lacks {error.name}"
            )
            raise TypeError(message) from error

    @property
    def directory(self) -> Path:
        """`snapshot_dir` as a path."""
        return Path(self.snapshot_dir)

    def names(self, epoch: int, *, ignores_gap: bool = False) -> tuple[str, ...]:
        """Returns the directories that a snapshot of an epoch is written to.

        Args:
            epoch: Index of the epoch.
            ignores_gap: Whether to ignore the gap, as for the state in which a run was interrupted.
        """
        on_gap = ignores_gap or epoch % self.snapshot_gap == 0
        numbered = (f"{_PREFIX}{epoch}",)
        by_mode: dict[str, tuple[str, ...]] = {
            "last": (PARAMS,),
            "all": numbered,
            "gap": numbered if on_gap else (),
            "gap_overwrite": (PARAMS,) if on_gap else (),
            "gap_and_last": (*numbered, PARAMS) if on_gap else (PARAMS,),
            "none": (),
        }
        return by_mode[self.snapshot_mode]


def epoch_of(name: str) -> int | None:
    """Returns the epoch of a directory called `itr_<e>`; `None` for any other name."""
    number = name.removeprefix(_PREFIX)
    return (
        int(number) if name.startswith(_PREFIX) and number.isascii() and number.isdigit() else None
    )
