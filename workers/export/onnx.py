"""ONNX: the exchange format that other runtimes read.

Needs the packages onnx and onnxscript, which a worker may lack.
"""

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch

from workers.core.errors import PartNotFoundError
from workers.export.onnx_packages import missing_packages
from workers.export.tracing import trace_module


def require_packages() -> None:
    """Checks that the packages of the format are installed.

    Raises:
        PartNotFoundError: If one is missing; the message says how to install it.
    """
    missing = missing_packages()
    if missing:
        needs = " and ".join(missing)
        raise PartNotFoundError(
            f"the export format onnx needs {needs}: pip install {' '.join(missing)}"
        )


def write_onnx(module: torch.nn.Module, path: Path, example: tuple[torch.Tensor, ...]) -> Path:
    """Writes a module as one ONNX file whose first dimension is dynamic.

    Inputs are called `input_0` …, the output `output`.

    Args:
        module: On the CPU, in eval mode.
        path: Replaced.
        example: One tensor [N, ...] per input, with N of at least 2.

    Raises:
        PartNotFoundError: If a package is missing.
    """
    require_packages()
    with _suppress_output():
        converted = torch.onnx.export(
            trace_module(module, example),
            input_names=[f"input_{index}" for index in range(len(example))],
            output_names=["output"],
            dynamo=True,
            external_data=False,
        )
        if converted is None:
            raise RuntimeError("torch.onnx.export returned no program")
        converted.save(str(path), external_data=False)
    return path


@contextlib.contextmanager
def _suppress_output() -> Iterator[None]:
    """Suppresses the exporter's output, logs and warnings."""
    level = logging.getLogger("torch.onnx").level
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.getLogger("torch.onnx").setLevel(level)
