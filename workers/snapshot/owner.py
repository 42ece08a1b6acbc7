"""What a snapshot records of the process that writes it.

torch is imported at the call, so that importing this module costs nothing.
"""

import platform

import palestra


def versions() -> dict[str, str]:
    """Returns the versions that a bit-exact resume depends on."""
    import gymnasium  # noqa: PLC0415
    import numpy as np  # noqa: PLC0415
    import torch  # noqa: PLC0415

    return {
        "palestra": palestra.__version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),  # else a process that it is sent to loads torch for it
        "numpy": np.__version__,
        "gymnasium": gymnasium.__version__,
        "cuda": torch.version.cuda or "",
    }


def device_name(device: str) -> str:
    """Returns what a device is."""
    import torch  # noqa: PLC0415

    return (
        torch.cuda.get_device_name()
        if device == "cuda"
        else platform.processor() or platform.machine()
    )
