"""A state tree as files: tensors as safetensors, arrays as npz without pickle, the rest as JSON.

Owns the layout inside a snapshot's directory. Each top-level part of the tree has its own files, so that a large memory lies apart:
`<part>.safetensors`, `<part>.npz`, and one `state.json` in which `{"$tensor": name}` and `{"$array": name}` stand for what lies in them,
and `{"$files": true}` for the files that a part wrote itself. torch, which takes seconds to load, is loaded for tensors alone.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from workers.core.errors import SnapshotUnreadableError
from workers.core.types import OwnFiles, OwnFilesAt, StateTree

if TYPE_CHECKING:
    import torch

STATE_FILE: Final = "state.json"
_PART_NAME: Final = re.compile(r"^[a-z][a-z0-9_]{0,31}$")
_MARKS: Final = frozenset({"$tensor", "$array", "$float", "$files"})


def write_tree(directory: Path, tree: StateTree) -> list[Path]:
    """Writes a tree into an empty directory and returns the files, not yet synced.

    Raises:
        TypeError: If a leaf is none of those that `StateTree` allows, or a part's own files have names that the snapshot needs.
        OSError: If the disk is full or fails.
    """
    document: dict[str, Any] = {}
    packers: dict[str, _Packer] = {}
    for part, state in tree.items():
        if not _PART_NAME.fullmatch(part):
            raise TypeError(f"{part!r} cannot name a part of a snapshot")
        packers[part] = _Packer()
        document[part] = packers[part].pack(state, part)
    files = _write_own_files(directory, [one for packer in packers.values() for one in packer.own_files])
    for part, packer in packers.items():
        files += packer.write(directory, part)
    path = _unused(directory / STATE_FILE)
    path.write_text(json.dumps(document, allow_nan=False))
    return [*files, path]


def read_tree(directory: Path) -> StateTree:
    """Returns the tree of a verified directory; tensors are on the CPU.

    Raises:
        SnapshotUnreadableError: If the files do not hold a tree.
    """
    try:
        document = json.loads((directory / STATE_FILE).read_bytes())
        return {part: _Unpacker(directory, part).unpack(state) for part, state in document.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SnapshotUnreadableError(f"the snapshot's state cannot be read: {type(error).__name__}: {error}") from error


class _Packer:
    """Takes tensors and arrays out of one part."""

    def __init__(self) -> None:
        self._tensors: dict[str, torch.Tensor] = {}
        self._arrays: dict[str, np.ndarray[Any, Any]] = {}
        self.own_files: list[OwnFiles] = []

    def pack(self, value: Any, path: str) -> Any:
        """Returns what of `value` is JSON."""
        if isinstance(value, dict):
            return self._pack_dict(value, path)
        if isinstance(value, list | tuple):
            return [self.pack(item, f"{path}/{index}") for index, item in enumerate(value)]
        if _is_tensor(value):
            self._tensors[path] = value.detach()
            return {"$tensor": path}
        if isinstance(value, np.ndarray):
            return self._pack_array(value, path)
        if isinstance(value, OwnFiles):
            self.own_files.append(value)
            return {"$files": True}
        return _scalar(value, path)

    def write(self, directory: Path, part: str) -> list[Path]:
        """Writes the files of the part, those that it needs."""
        files: list[Path] = []
        if self._tensors:
            from safetensors.torch import save_file  # noqa: PLC0415 - loads torch

            files.append(_unused(directory / f"{part}.safetensors"))
            save_file(_unshared(self._tensors), files[-1])
        if self._arrays:
            files.append(_unused(directory / f"{part}.npz"))
            with files[-1].open("wb") as file:
                np.savez(file, allow_pickle=False, **{str(index): array for index, array in enumerate(self._arrays.values())})
        return files

    def _pack_dict(self, value: dict[Any, Any], path: str) -> dict[str, Any]:
        if any(not isinstance(key, str) for key in value) or not _MARKS.isdisjoint(value):
            raise TypeError(f"{path}: the keys of a state must be strings that do not look like a snapshot's own marks")
        return {key: self.pack(item, f"{path}/{key}") for key, item in value.items()}

    def _pack_array(self, value: np.ndarray[Any, Any], path: str) -> Any:
        if value.dtype.hasobject:
            raise TypeError(f"{path}: an array of Python objects cannot be saved")
        self._arrays[path] = value
        return {"$array": str(len(self._arrays) - 1)}


class _Unpacker:
    """Puts tensors and arrays back into one part."""

    def __init__(self, directory: Path, part: str) -> None:
        tensors, arrays = directory / f"{part}.safetensors", directory / f"{part}.npz"
        self._tensors = _load_tensors(tensors) if tensors.exists() else {}
        self._arrays: dict[str, Any] = {}
        if arrays.exists():
            with np.load(arrays, allow_pickle=False) as archive:
                self._arrays = {name: archive[name] for name in archive.files}
        self._marked: dict[str, Callable[[Any], Any]] = {
            "$tensor": self._tensors.__getitem__,
            "$array": self._arrays.__getitem__,
            "$float": float,
            "$files": lambda _: OwnFilesAt(str(directory)),
        }

    def unpack(self, value: Any) -> Any:
        """Returns `value` as it was packed."""
        if isinstance(value, list):
            return [self.unpack(item) for item in value]
        if not isinstance(value, dict):
            return value
        if len(value) == 1 and (read := self._marked.get(next(iter(value)))) is not None:
            return read(next(iter(value.values())))
        return {key: self.unpack(item) for key, item in value.items()}


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _load_tensors(path: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file  # noqa: PLC0415 - loads torch

    return load_file(path)


def _write_own_files(directory: Path, own: list[OwnFiles]) -> list[Path]:
    if len(own) > 1:
        raise TypeError("two parts write files of their own into one snapshot: only one can lie at its top")
    for one in own:
        one.save(str(directory))
    return [path for path in sorted(directory.rglob("*")) if not path.is_dir()]


def _unused(path: Path) -> Path:
    if path.exists():
        raise TypeError(f"the agent's own save wrote {path.name}, a name that the snapshot needs itself: use another one")
    return path


def _scalar(value: Any, path: str) -> Any:
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, np.generic):
        return _scalar(value.item(), path)
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(value)}
    raise TypeError(f"{path}: a {type(value).__name__} cannot be saved; a state holds tensors, arrays, numbers, strings, lists and dicts")


def _unshared(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Returns contiguous CPU tensors of which no two share memory, as safetensors demands."""
    seen: set[int] = set()
    result: dict[str, torch.Tensor] = {}
    for name, tensor in tensors.items():
        plain = tensor.cpu().contiguous()
        storage = plain.untyped_storage()
        if storage.data_ptr() in seen or storage.nbytes() != plain.numel() * plain.element_size():
            plain = plain.clone()
        seen.add(plain.untyped_storage().data_ptr())
        result[name] = plain
    return result
