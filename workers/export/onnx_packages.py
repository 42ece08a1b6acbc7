"""The packages that ONNX needs, found without importing torch: a worker's catalogue asks."""

import importlib.util
from typing import Final

PACKAGES: Final = ("onnx", "onnxscript")


def missing_packages() -> list[str]:
    """Returns which packages this interpreter lacks to write the format."""
    return [package for package in PACKAGES if importlib.util.find_spec(package) is None]
