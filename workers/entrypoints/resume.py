"""Resumes a training of the garage-style trainer from the command line.

    python -m workers.entrypoints.resume data/local/experiment --n-epochs 200

New snapshots are written to the same directory, unless another one is given. Algorithm and
environment are built from their recipes, so only classes marked with
`workers.core.recipes.rebuildable` and environments made by `gymnasium.make` can be resumed from the
command line.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from workers.entrypoints.trainer import TorchTrainer
from workers.snapshot.config import MODES, SnapshotConfig


def main(arguments: Sequence[str] | None = None) -> int:
    """Resumes a training and returns the exit status 0."""
    options = _parse(arguments)
    config = None
    if options.snapshot_dir is not None:
        config = SnapshotConfig(options.snapshot_dir, options.snapshot_mode, options.snapshot_gap)
    with TorchTrainer(config, options.device) as trainer:
        trainer.restore(options.from_dir, options.from_epoch)
        trainer.resume(n_epochs=options.n_epochs, batch_size=options.batch_size)
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="workers.entrypoints.resume", description="Resumes a training."
    )
    parser.add_argument("from_dir", type=Path, help="directory of the snapshots")
    parser.add_argument(
        "--from-epoch", default="last", help="last, first, exception or the number of an epoch"
    )
    parser.add_argument(
        "--n-epochs", type=int, help="index at which the training ends; the saved one if left away"
    )
    parser.add_argument(
        "--batch-size", type=int, help="env_steps of a batch; the saved one if left away"
    )
    parser.add_argument("--device", help="torch device")
    parser.add_argument(
        "--snapshot-dir", type=Path, help="where new snapshots go; the same directory if left away"
    )
    parser.add_argument(
        "--snapshot-mode", choices=MODES, default="last", help="with --snapshot-dir"
    )
    parser.add_argument(
        "--snapshot-gap", type=int, default=1, help="with --snapshot-dir, in epochs"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
