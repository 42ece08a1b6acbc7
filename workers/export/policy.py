"""Writes what is needed to act, and nothing else."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import save_file

from workers.core.protocols import Agent

ExportFormat = Literal["weights", "program"]


def write_export(
    agent: Agent, directory: Path, formats: Sequence[ExportFormat], description: dict[str, Any], example: torch.Tensor
) -> list[Path]:
    """Writes an agent's policy in the formats asked for.

    Args:
        agent: Whose policy.
        directory: Created; files in it are replaced.
        formats: `weights`: `weights.safetensors` and `policy.json`; `program`: `policy.pt2`, a `torch.export` program.
        description: What `policy.json` says, JSON values only.
        example: Observations [N, ...] with N of at least 2, to trace the program.

    Returns:
        The files.
    """
    directory.mkdir(parents=True, exist_ok=True)
    module: torch.nn.Module = agent.acting_module()
    files: list[Path] = []
    if "weights" in formats:
        files += _write_weights(module, directory, description)
    if "program" in formats:
        files.append(_write_program(module, directory, example))
    return files


def _write_weights(module: torch.nn.Module, directory: Path, description: dict[str, Any]) -> list[Path]:
    weights, policy = directory / "weights.safetensors", directory / "policy.json"
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in module.state_dict().items()}
    save_file(tensors, weights)
    shapes = {name: {"shape": list(tensor.shape), "dtype": str(tensor.dtype).removeprefix("torch.")} for name, tensor in tensors.items()}
    policy.write_text(json.dumps({**description, "format": "palestra-policy", "format_version": 1, "tensors": shapes}, indent=1))
    return [weights, policy]


def _write_program(module: torch.nn.Module, directory: Path, example: torch.Tensor) -> Path:
    path = directory / "policy.pt2"
    program = torch.export.export(module, (example,), dynamic_shapes=({0: torch.export.Dim("N")},))
    torch.export.save(program, path)
    return path
