"""Writes the weights and the traced program with which a policy or model acts or predicts."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file

from palestra.contract.names import ExportFormat
from workers.export.onnx import write_onnx
from workers.export.tracing import trace_module


def write_module(
    module: torch.nn.Module,
    directory: Path,
    formats: Sequence[ExportFormat],
    description: Mapping[str, object],
    example: tuple[torch.Tensor, ...],
) -> list[Path]:
    """Writes a module, on the CPU and in eval mode, in the requested formats.

    Args:
        module: Maps its inputs [N, ...] to outputs [N, ...].
        directory: Created; files in it are replaced.
        formats: `weights`: `weights.safetensors` and `policy.json`; `program`: `policy.pt2`, a
            `torch.export` program; `onnx`: `policy.onnx`, which needs the packages onnx and
            onnxscript.
        description: Content of `policy.json`, JSON values only.
        example: One tensor [N, ...] per input, with N of at least 2, to trace the program.

    Returns:
        The files.

    Raises:
        PartNotFoundError: If a format needs a package that is not installed here.
    """
    directory.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    if "weights" in formats:
        files += _write_weights(module, directory, description)
    if "program" in formats:
        files.append(_write_program(module, directory, example))
    if "onnx" in formats:
        files.append(write_onnx(module, directory / "policy.onnx", example))
    return files


def _write_weights(
    module: torch.nn.Module, directory: Path, description: Mapping[str, object]
) -> list[Path]:
    weights, policy = directory / "weights.safetensors", directory / "policy.json"
    tensors = {
        name: tensor.detach().cpu().contiguous().clone()
        for name, tensor in module.state_dict().items()
    }
    save_file(tensors, weights)
    shapes = {
        name: {"shape": list(tensor.shape), "dtype": str(tensor.dtype).removeprefix("torch.")}
        for name, tensor in tensors.items()
    }
    policy.write_text(
        json.dumps(
            {**description, "format": "palestra-policy", "format_version": 1, "tensors": shapes},
            indent=1,
        )
    )
    return [weights, policy]


def _write_program(
    module: torch.nn.Module, directory: Path, example: tuple[torch.Tensor, ...]
) -> Path:
    path = directory / "policy.pt2"
    torch.export.save(trace_module(module, example), path)
    return path
