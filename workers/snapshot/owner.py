"""The run, versions and device that a snapshot's manifest records.

torch is imported when a function is called, so that importing this module is fast.
"""

import platform

import palestra
from palestra.contract.names import new_id
from workers.snapshot.snapshot_directory import SnapshotOwner


def snapshot_owner(  # noqa: PLR0913 - one for each fact that differs
    *,
    definition_hash: str,
    seed: int,
    device: str,
    is_exact: bool = True,
    scales_by_bounds: bool = True,
    run_id: str | None = None,
    attempt_id: str | None = None,
    experiment_id: str = "",
    parent: str | None = None,
) -> SnapshotOwner:
    """Returns the owner of snapshots that this process writes, with its versions and its device.

    Args:
        definition_hash: Text that is equal for two snapshots of the same training.
        seed: The run's seed.
        device: Type of the torch device: `cpu` or `cuda`.
        is_exact: Whether the training can be resumed bit-exactly if it runs on the CPU.
        scales_by_bounds: Whether the networks divide uint8 observations by their bounds.
        run_id: ID of the run; `None` creates a new one.
        attempt_id: ID of the attempt; `None` creates a new one.
        experiment_id: Name of the experiment, function or directory.
        parent: ID of the snapshot from which the training was resumed; `None` if it was not.
    """
    return SnapshotOwner(
        run_id=run_id or new_id("run"),
        attempt_id=attempt_id or new_id("att"),
        experiment_id=experiment_id,
        definition_hash=definition_hash,
        seed=seed,
        parent=parent,
        versions=versions(),
        device=device_name(device),
        resume_exact=is_exact and device == "cpu",
        scales_by_bounds=scales_by_bounds,
    )


def versions() -> dict[str, str]:
    """Returns the versions that a bit-exact resume depends on."""
    import gymnasium  # noqa: PLC0415
    import numpy as np  # noqa: PLC0415
    import torch  # noqa: PLC0415

    return {
        "palestra": palestra.__version__,
        "python": platform.python_version(),
        # A process would load torch to unpickle the original object, which is a `TorchVersion`.
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "gymnasium": gymnasium.__version__,
        "cuda": torch.version.cuda or "",
    }


def device_name(device: str) -> str:
    """Returns the name of the GPU for `cuda`, otherwise that of the processor."""
    import torch  # noqa: PLC0415

    return (
        torch.cuda.get_device_name()
        if device == "cuda"
        else platform.processor() or platform.machine()
    )
