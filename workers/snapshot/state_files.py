"""A state tree as files: tensors as safetensors, arrays as npz without pickle, the rest as JSON.

Defines the layout of a snapshot's directory. Each top-level part of the tree has its own files, so
that a large memory is stored separately: `<part>.safetensors`, `<part>.npz` and the files of
streams (`workers.snapshot.row_segments`). One `state.json` holds the rest of all parts; in it
`{"$tensor": name}`, `{"$array": name}` and `{"$stream": ...}` refer to the contents of those files,
and `{"$files": true}` to files that a part wrote itself. torch takes seconds to import, so it is
imported only if the tree holds tensors.
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
from workers.core.row_stream import RowStream
from workers.core.types import Array, JsonObject, PartFiles, PartFilesDirectory, StateTree
from workers.snapshot.row_segments import read_stream, write_stream

if TYPE_CHECKING:
    import torch

STATE_FILE: Final = "state.json"
_PART_NAME: Final = re.compile(r"^[a-z][a-z0-9_]{0,31}$")
_MARKS: Final = frozenset({"$tensor", "$array", "$stream", "$float", "$files"})


def write_tree(directory: Path, tree: StateTree, before: Path | None = None) -> None:
    """Writes a tree into an empty directory; the files are not synced yet.

    Args:
        directory: Output directory, which exists and is empty.
        tree: The state, by part.
        before: Directory of an earlier snapshot of the same history, whose files of streams may be
            shared.

    Raises:
        TypeError: If a leaf is of a type that `StateTree` does not allow, or a part's own files
            have names that the snapshot needs.
        OSError: If the disk is full or fails.
    """
    document: JsonObject = {}
    packers: dict[str, _Packer] = {}
    for part, state in tree.items():
        if not _PART_NAME.fullmatch(part):
            raise TypeError(f"{part!r} cannot name a part of a snapshot")
        packers[part] = _Packer()
        document[part] = packers[part].pack(state, part)
    _write_own_files(directory, [one for packer in packers.values() for one in packer.own_files])
    for part, packer in packers.items():
        packer.write(directory, part, before)
    path = _check_unused(directory / STATE_FILE)
    path.write_text(json.dumps(document, allow_nan=False))


def read_tree(directory: Path) -> StateTree:
    """Returns the tree of a verified directory; tensors are on the CPU.

    Raises:
        SnapshotUnreadableError: If the files do not hold a tree.
    """
    try:
        document = json.loads((directory / STATE_FILE).read_bytes())
        return {part: _Unpacker(directory, part).unpack(state) for part, state in document.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SnapshotUnreadableError(
            f"the snapshot's state cannot be read: {type(error).__name__}: {error}"
        ) from error


class _Packer:
    """Separates the tensors, arrays and streams of one part from its JSON document."""

    def __init__(self) -> None:
        self._tensors: dict[str, torch.Tensor] = {}
        self._arrays: dict[str, Array] = {}
        self._streams: list[tuple[RowStream, dict[str, object]]] = []
        """Streams, each with the JSON object that refers to it and that `write` fills in."""
        self.own_files: list[PartFiles] = []

    def pack(self, value: Any, path: str) -> Any:
        """Returns `value` as JSON, with references in place of tensors, arrays and streams."""
        if isinstance(value, dict):
            return self._pack_dict(value, path)
        if isinstance(value, list | tuple):
            return [self.pack(item, f"{path}/{index}") for index, item in enumerate(value)]
        if _is_tensor(value):
            self._tensors[path] = value.detach()
            return {"$tensor": path}
        if isinstance(value, np.ndarray):
            return self._pack_array(value, path)
        if isinstance(value, RowStream | PartFiles):
            return self._pack_files(value)
        return _scalar(value, path)

    def write(self, directory: Path, part: str, before: Path | None) -> None:
        """Writes the files of the part that are needed; must be called after `pack`."""
        if self._tensors:
            from safetensors.torch import save_file  # noqa: PLC0415 - loads torch

            save_file(
                _copy_shared_tensors(self._tensors),
                _check_unused(directory / f"{part}.safetensors"),
            )
        if self._arrays:
            with _check_unused(directory / f"{part}.npz").open("wb") as file:
                np.savez(
                    file,
                    allow_pickle=False,
                    **{str(index): array for index, array in enumerate(self._arrays.values())},
                )
        for index, (stream, document) in enumerate(self._streams):
            document.update(write_stream(directory, f"{part}.{index}", stream, before))

    def _pack_dict(self, value: dict[Any, Any], path: str) -> JsonObject:
        if any(not isinstance(key, str) for key in value) or not _MARKS.isdisjoint(value):
            raise TypeError(
                f"{path}: the keys of a state must be strings that do not look like a snapshot's "
                "own marks"
            )
        return {key: self.pack(item, f"{path}/{key}") for key, item in value.items()}

    def _pack_files(self, value: RowStream | PartFiles) -> JsonObject:
        if isinstance(value, PartFiles):
            self.own_files.append(value)
            return {"$files": True}
        self._streams.append((value, {}))
        return {"$stream": self._streams[-1][1]}

    def _pack_array(self, value: Array, path: str) -> object:
        if value.dtype.hasobject:
            raise TypeError(f"{path}: an array of Python objects cannot be saved")
        self._arrays[path] = value
        return {"$array": str(len(self._arrays) - 1)}


class _Unpacker:
    """Inserts the stored tensors and arrays into the state of one part."""

    def __init__(self, directory: Path, part: str) -> None:
        tensors, arrays = directory / f"{part}.safetensors", directory / f"{part}.npz"
        self._tensors = _load_tensors(tensors) if tensors.exists() else {}
        self._arrays: JsonObject = {}
        if arrays.exists():
            with np.load(arrays, allow_pickle=False) as archive:
                self._arrays = {name: archive[name] for name in archive.files}
        self._marked: dict[str, Callable[[Any], object]] = {
            "$tensor": self._tensors.__getitem__,
            "$array": self._arrays.__getitem__,
            "$stream": lambda document: read_stream(directory, document),
            "$float": float,
            "$files": lambda _: PartFilesDirectory(str(directory)),
        }

    def unpack(self, value: object) -> Any:
        """Returns `value` with the stored objects in place of the references to them."""
        if isinstance(value, list):
            return [self.unpack(item) for item in value]
        if not isinstance(value, dict):
            return value
        if len(value) == 1 and (read := self._marked.get(next(iter(value)))) is not None:
            return read(next(iter(value.values())))
        return {key: self.unpack(item) for key, item in value.items()}


def _is_tensor(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _load_tensors(path: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file  # noqa: PLC0415 - loads torch

    return load_file(path)


def _write_own_files(directory: Path, own: list[PartFiles]) -> None:
    if len(own) > 1:
        raise TypeError("two parts write files of their own into one snapshot: only one part can")
    for one in own:
        one.save(str(directory))


def _check_unused(path: Path) -> Path:
    if path.exists():
        raise TypeError(
            f"the agent's own save wrote {path.name}, a name that the snapshot needs itself: use "
            "another one"
        )
    return path


def _scalar(value: object, path: str) -> object:
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, np.generic):
        return _scalar(value.item(), path)
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(value)}
    raise TypeError(
        f"{path}: a {type(value).__name__} cannot be saved; a state holds tensors, arrays, "
        "numbers, strings, lists and dicts"
    )


def _copy_shared_tensors(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
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
