"""Checks of the arrays of a batch of episodes."""

from typing import TYPE_CHECKING

import numpy as np

from workers.entrypoints.trainer_parts.column_arrays import leaves_of

if TYPE_CHECKING:
    from workers.entrypoints.trainer_parts.episode_batch import EpisodeBatch

STEPWISE = ("observations", "actions", "rewards", "step_types")
"""Names of the batch's arrays that have one row per step."""


def check_batch(batch: "EpisodeBatch") -> None:
    """Raises ValueError if the first dimension of an array is not as documented at `EpisodeBatch`.

    Also raises ValueError if a value is not an array.
    """
    lengths: object = batch.lengths
    if not isinstance(lengths, np.ndarray) or lengths.ndim != 1 or lengths.dtype.kind not in "iu":
        raise ValueError(f"lengths must be an array of integers [E], not {_describe(lengths)}")
    if not len(lengths) or lengths.min() < 1:
        raise ValueError("lengths must name at least one episode, of at least one step each")
    steps, episodes = int(lengths.sum()), len(lengths)
    for name in STEPWISE:
        _check_rows(name, getattr(batch, name), steps)
    for name, column in (
        ("last_observations", batch.last_observations),
        ("workers", batch.workers),
    ):
        _check_rows(name, column, episodes)
    for name, rows in (
        ("env_infos", steps),
        ("agent_infos", steps),
        ("episode_infos_by_episode", episodes),
    ):
        for column in leaves_of(getattr(batch, name)):
            _check_rows(name, column, rows)


def _check_rows(name: str, column: object, rows: int) -> None:
    if not isinstance(column, np.ndarray) or not column.shape or len(column) != rows:
        raise ValueError(f"{name} must be an array of {rows} rows, not {_describe(column)}")


def _describe(value: object) -> str:
    return (
        f"one of shape {value.shape} and dtype {value.dtype}"
        if isinstance(value, np.ndarray)
        else f"a {type(value).__name__}"
    )
