"""TensorBoard event files with the tags of PFRL's evaluator.

The package `tensorboard` is needed only where this is used.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

_EVALUATION: Final = ("mean", "median", "max", "min", "stdev", "length_mean")
_LAYOUT: Final = {
    "Aggregate Charts": {
        "mean w/ min-max": ["Margin", ["eval/mean", "eval/min", "eval/max"]],
        "mean +/- std": ["Margin", ["eval/mean", "extras/meanplusstdev", "extras/meanminusstdev"]],
    }
}


class TensorBoardFile:
    """Event files in one directory.

    Args:
        directory: Directory of the event files.
        purge_step: After a resume, the step from which on TensorBoard hides earlier events; `None`
            hides none.

    Raises:
        ImportError: If the package is missing; the message says what to install.
    """

    def __init__(self, directory: Path, purge_step: int | None = None) -> None:
        self._writer: Any = writer_class()(log_dir=str(directory), purge_step=purge_step)
        self._writer.add_custom_scalars(_LAYOUT)

    def write(
        self,
        step: int,
        agent: Mapping[str, object],
        env: Mapping[str, object],
        evaluation: Mapping[str, float],
    ) -> None:
        """Writes one evaluation and flushes.

        Args:
            step: Env_step of the evaluation.
            agent: Statistics for the tags `agent/<name>`; values that are not numbers are skipped.
            env: Statistics for the tags `env/<name>`.
            evaluation: `mean`, `median`, `max`, `min`, `stdev` and `length_mean`.
        """
        mean, stdev = evaluation["mean"], evaluation["stdev"]
        scalars = {
            **{f"agent/{name}": value for name, value in agent.items()},
            **{f"env/{name}": value for name, value in env.items()},
            **{f"eval/{name}": evaluation[name] for name in _EVALUATION},
            "extras/meanplusstdev": mean + stdev,
            "extras/meanminusstdev": mean - stdev,
        }
        now = time.time()
        for tag, value in scalars.items():
            if isinstance(value, int | float | np.number):
                self._writer.add_scalar(tag, float(value), step, now)
        self._writer.flush()

    def close(self) -> None:
        """Closes the files."""
        self._writer.close()


def writer_class() -> Any:
    """Returns the class that writes event files.

    Raises:
        ImportError: If the package `tensorboard` is missing.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 - an optional dependency
    except ImportError as error:
        raise ImportError(
            "use_tensorboard=True needs the package tensorboard: pip install tensorboard"
        ) from error
    return SummaryWriter
