"""Machine code of pure functions of tensors: shared libraries on disk.

A process loads them without the compiler.

A library is found by one of two keys: the identity of its function (`identity_of`), which needs no
tracing, or the traced graph. Functions with different identities share a library if their graphs
are equal. Both keys also contain the signature of the arguments and everything else that the code
depends on: the traced sources, the version of torch, and the processor. On the CPU only.
"""

import contextlib
import dataclasses
import functools
import hashlib
import os
import platform
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

import gymnasium as gym
import numpy as np
import torch
from pydantic import BaseModel
from torch import Tensor

CODE_VARIABLE: Final = "TORCHINDUCTOR_CACHE_DIR"
"""torch's environment variable for the directory of compiled code; workers set it for trainers."""
MAX_LIBRARIES: Final = 256
"""Maximum number of stored libraries, of 1 to 2 MB each; the least recently loaded are removed."""
_ABANDONED_SECONDS: Final = 3_600
_TRACED_PACKAGES: Final = ("workers.acceleration", "workers.rl.agents", "workers.rl.networks")
"""Packages that contain, in all subpackages, our code that runs while a function is traced.

Everything else that the compiled code depends on is an argument.
"""

Code = Callable[[list[Tensor]], list[Tensor]]


@runtime_checkable
class CodeInput(Protocol):
    """A value that compiled code may read, with a description of all that the code depends on."""

    def describe(self) -> str:
        """Returns a description that differs between any two different values of the class."""


def machine_code(
    identity: str | None,
    signature: str,
    function: Callable[..., list[Tensor]],
    examples: Sequence[Tensor],
) -> Code:
    """Returns a function compiled for arguments like the examples.

    It is loaded from disk, or compiled now and stored there.

    Args:
        identity: As `identity_of` returned it.
        signature: Describes the examples and the settings of this process that code depends on.
        function: A pure function of tensors.
        examples: Tensors on the CPU.

    Raises:
        Exception: Of various types, if the function cannot be traced or there is no C++ compiler.
    """
    directory = code_directory()
    known = None if identity is None else directory / f"{_digest(identity, signature)}.so"
    if known is not None and known.is_file():
        os.utime(known)
        return _load(known)
    graph = _trace(function, examples)
    constants = [
        f"{name} {_describe_array(value.numpy())}" for name, value in graph.named_buffers()
    ]
    library = directory / f"{_digest(graph.code, *constants, signature)}.so"
    if not library.is_file():
        _compile(graph, examples, library)
        _prune(directory)
    if known is not None:
        with contextlib.suppress(
            OSError
        ):  # Another process stored it first, or the file system has no links.
            os.link(library, known)
    return _load(library)


def identity_of(function: Callable[..., object]) -> str | None:
    """Returns a text that identifies a method: its name, and all values that it can read.

    Returns:
        `None` if the function is not a bound method, or if its object holds a value that cannot be
            described.
    """
    owner = getattr(function, "__self__", None)
    if owner is None:
        return None
    try:
        return f"{function.__module__}.{function.__qualname__} of {_describe(owner)}"
    except TypeError:
        return None


def apply_determinism() -> None:
    """Applies the process's determinism setting to the compiler, which this call loads.

    The call is needed if the process changed the setting before it imported the compiler.
    """
    torch.use_deterministic_algorithms(
        torch.are_deterministic_algorithms_enabled(),
        warn_only=torch.is_deterministic_algorithms_warn_only_enabled(),
    )


def code_directory() -> Path:
    """Returns the directory of libraries, after creating it.

    Raises:
        PermissionError: If another user owns it, who could place arbitrary code there.
    """
    own = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "palestra" / "compiled"
    directory = Path(os.environ.get(CODE_VARIABLE) or own) / "updates"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if hasattr(os, "getuid") and directory.stat().st_uid != os.getuid():
        raise PermissionError(
            f"{directory} is of another user, who could place code there: set {CODE_VARIABLE} to a "
            "directory of your own"
        )
    return directory


def _describe(value: object) -> str:
    """Returns a description that differs between any two different values.

    Raises:
        TypeError: If a value is of a class whose fields are not known to describe it completely.
    """
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if dataclasses.is_dataclass(value) and name.startswith("workers."):
        parts = [
            f"{field.name}={_describe(getattr(value, field.name))}"
            for field in dataclasses.fields(value)
        ]
    elif isinstance(value, CodeInput):
        parts = [value.describe()]
    elif isinstance(value, BaseModel) and name.startswith("palestra."):
        parts = [value.model_dump_json()]
    elif isinstance(value, tuple | list):
        parts = [_describe(one) for one in value]
    elif isinstance(value, Mapping):
        parts = [f"{_describe(key)}: {_describe(one)}" for key, one in value.items()]
    elif isinstance(value, gym.spaces.Box):
        parts = [_describe_array(value.low), _describe_array(value.high)]
    elif isinstance(value, gym.spaces.MultiDiscrete):
        parts = [_describe_array(value.nvec), _describe_array(value.start)]
    elif isinstance(value, np.ndarray):
        parts = [_describe_array(value)]
    elif value is None or isinstance(
        value, gym.spaces.Discrete | gym.spaces.MultiBinary | np.dtype | str | int | float
    ):
        parts = [repr(value)]
    else:
        raise TypeError(f"the representation of {name} may omit values that code depends on")
    return f"{name}({', '.join(parts)})"


def _describe_array(array: np.ndarray[Any, Any]) -> str:
    return (
        f"{array.dtype}{list(array.shape)} "
        f"{hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()}"
    )


def _digest(*parts: str) -> str:
    return hashlib.sha256(
        "\n\n".join((_code_environment(), str(torch.get_default_dtype()), *parts)).encode()
    ).hexdigest()


@functools.cache
def _code_environment() -> str:
    """Returns the versions, processor features and source digest that all code depends on."""
    sources = digest_of_sources(traced_folders())
    described = [
        line for line in _processor().splitlines() if line.startswith(("flags", "Features"))
    ][:1]
    return "\n".join(
        [torch.__version__, platform.platform(), platform.machine(), *described, sources]
    )


def traced_folders() -> list[Path]:
    """Returns the folders that contain all sources that compiled code may depend on."""
    return [Path(str(files(package))) for package in _TRACED_PACKAGES]


def digest_of_sources(folders: Iterable[Path]) -> str:
    """Returns a SHA-256 of the names and bytes of all Python files in and below `folders`."""
    digest = hashlib.sha256()
    for folder in folders:
        for source in sorted(folder.rglob("*.py")):
            content = source.read_bytes()
            digest.update(f"{source.relative_to(folder).as_posix()} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()


def _processor() -> str:
    try:
        return Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return ""


def _trace(function: Callable[..., object], examples: Sequence[Tensor]) -> torch.fx.GraphModule:
    # This import loads the compiler, which takes as long as loading the rest of torch.
    from torch.fx.experimental.proxy_tensor import make_fx  # noqa: PLC0415

    # One tensor may be passed for two arguments in this call and two tensors in the next: each
    # argument is traced as a separate tensor.
    with torch.no_grad():
        return make_fx(function, tracing_mode="fake", _allow_non_fake_inputs=True)(
            *(leaf.detach() for leaf in examples)
        )


def _compile(graph: torch.fx.GraphModule, examples: Sequence[Tensor], library: Path) -> None:
    # torch keeps precompiled headers in a directory of /tmp with a predictable name, and they take
    # as long as two libraries. The code that calls the kernels is as fast without optimisation.
    options = {
        "aot_inductor.precompile_headers": False,
        "aot_inductor.compile_wrapper_opt_level": "O0",
    }
    apply_determinism()
    with (
        tempfile.TemporaryDirectory(prefix="making-", dir=library.parent) as making,
        warnings.catch_warnings(),
    ):
        # torch itself issues these warnings while it compiles.
        warnings.simplefilter("ignore", FutureWarning)
        options["aot_inductor.output_path"] = str(Path(making, library.name))
        made = _compile_for_this_processor(graph, examples, options)
        if not isinstance(made, str):
            raise TypeError(f"the compiler returned a {type(made).__name__}, not a library")
        with Path(made).open("rb") as file:
            os.fsync(file.fileno())
        Path(made).replace(library)


def _compile_for_this_processor(
    graph: torch.fx.GraphModule, examples: Sequence[Tensor], options: Mapping[str, object]
) -> object:
    """Returns what the compiler returns, for the vector instructions that the processor has.

    torch would compile a program for each set of them, to see whether the compiler knows it.
    """
    from torch._inductor import aot_compile, config, cpu_vec_isa  # noqa: PLC0415

    if config.cpp.vec_isa_ok is None:
        with contextlib.suppress(Exception):  # An older compiler may not know all of them.
            untried = {**options, "cpp.vec_isa_ok": True}
            return aot_compile(graph, tuple(examples), options=untried)
        cpu_vec_isa.valid_vec_isa_list.cache_clear()
    return aot_compile(graph, tuple(examples), options=dict(options))


def _prune(directory: Path) -> None:
    """Removes the least recently loaded libraries and the leftover files of killed processes.

    A process that has already loaded a removed library can still use it.
    """
    with contextlib.suppress(OSError):
        for making in directory.glob("making-*"):
            if making.stat().st_mtime < time.time() - _ABANDONED_SECONDS:
                shutil.rmtree(making, ignore_errors=True)
        by_age = sorted(directory.glob("*.so"), key=lambda one: one.stat().st_mtime)
        for library in by_age[:-MAX_LIBRARIES]:
            library.unlink()


def _load(library: Path) -> Code:
    # Every public way to load a library would import the compiler.
    runner: Any = torch._C._aoti.AOTIModelContainerRunnerCpu(str(library), 1)  # noqa: SLF001
    run: Code = runner.run
    return run
