"""Compiles pure functions of tensors and selects the machine code by argument layout.

On the CPU the compiled code is called directly, without the guards of `torch.compile`.

`torch.compile` checks at each call whether all its assumptions still hold, which takes half of the
time of a small network's update. Here a function is traced once per *signature* of its arguments,
and the compiled code is looked up in a dictionary by that signature.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import is_
from typing import Any, Final, NamedTuple

import structlog
import torch
from torch import Tensor

from workers.acceleration.compilations import COMPILATIONS
from workers.acceleration.library_cache import apply_determinism, machine_code

MAX_SIGNATURES: Final = 16
"""Maximum number of argument signatures for which one function is compiled.

Further signatures run eagerly, so that the number of compilations is bounded.
"""

Builder = Callable[[Iterator[Tensor]], Any]
"""Takes as many tensors as it needs and makes a nested tuple of them."""

Code = Callable[[Any, list[Tensor]], Any]
"""Takes the arguments, and their tensors in order."""

_log = structlog.get_logger()


class StateBuffers:
    """The state buffers that the compiled updates of an agent write to.

    They are reused because newly allocated memory for each call would not be in the CPU's caches.

    Only the compiled updates write to the buffers. A value that is read from them is valid until
    the next update.
    """

    def __init__(self) -> None:
        self.flat = _FlatTree(object(), (), ())

    def writable_state(self, state: object) -> "_FlatTree":
        """Returns a state with the values of `state` whose tensors may be written to.

        Tensors that are held already are reused, all others are copied.
        """
        if state is not self.flat.tree:
            given, mine = _flatten_tree(state), self.flat.leaves
            kept = [
                index < len(mine) and leaf is mine[index] for index, leaf in enumerate(given.leaves)
            ]
            leaves = [
                leaf if stays else _copy_with_strides(leaf)
                for leaf, stays in zip(given.leaves, kept, strict=True)
            ]
            self.flat = _FlatTree(_builder(state)(iter(leaves)), leaves, given.signature)
        return self.flat


class CompiledFunction:
    """A pure function of nested tuples of tensors, compiled once per argument layout.

    It returns a nested tuple of tensors. The first call with a layout compiles.

    If compilation fails on this machine, `fallback` runs instead. That is safe because a pure
    function has no side effects before the failure.

    Args:
        function: The function to compile. Everything that it reads beside its arguments must be
            constant.
        fallback: Computes the same result where compilation fails.
        like: Computes, without the compiler, a result with the structure of the function's result.
        identity: Identifies the function, see `workers.acceleration.library_cache.identity_of`.
        uses_cudagraph: Whether the kernels are replayed as one CUDA graph.
        buffers: Buffers that on the CPU receive the new state, for a function whose first argument
            is a state and the first part of whose result is the next state.
    """

    def __init__(
        self,
        function: Callable[..., object],
        *,
        fallback: Callable[..., object],
        like: Callable[..., Any],
        identity: str | None,
        uses_cudagraph: bool = False,
        buffers: StateBuffers | None = None,
    ) -> None:
        self._function, self._fallback, self._like = function, fallback, like
        self._identity = identity
        self._cudagraph = uses_cudagraph
        self._held = buffers
        self._made: dict[tuple[object, ...], Code] = {}
        self._again: _Call | None = None
        """The last call, kept if the next one is likely to have the same arguments: a held state
        and a batch whose tensors are refilled.
        """

    def __call__(self, *arguments: object) -> Any:
        setting, call = (
            (torch.are_deterministic_algorithms_enabled(), torch.get_num_threads()),
            self._again,
        )
        if call is None or call.setting != setting or not all(map(is_, arguments, call.arguments)):
            call = self._prepared_call(setting, arguments)
        return call.code(arguments, call.leaves)

    def _prepared_call(self, setting: tuple[bool, int], arguments: tuple[object, ...]) -> "_Call":
        """Returns the prepared call, which is reused because inspecting all tensors is slow."""
        held = None if self._held is None else self._held.flat
        flats = [
            held if held is not None and argument is held.tree else _flatten_tree(argument)
            for argument in arguments
        ]
        key = setting, *(flat.signature for flat in flats)
        leaves = [leaf for flat in flats for leaf in flat.leaves]
        known = self._made.get(key)
        call = _Call(setting, arguments, leaves, known or partial(self._compile_and_call, key))
        self._again = call if known is not None and flats[0] is held else None
        return call

    def _compile_and_call(
        self, key: tuple[object, ...], arguments: tuple[object, ...], leaves: list[Tensor]
    ) -> Any:
        """Compiles for the signature of these arguments, and returns the function's result."""
        made: Code = lambda arguments, _: self._fallback(*arguments)  # noqa: E731
        if len(self._made) >= MAX_SIGNATURES:
            return made(arguments, leaves)
        try:
            with COMPILATIONS.add():
                quick = self._compile(key, arguments, leaves)
                result = quick(arguments, leaves)
            made = quick
        except Exception as error:  # noqa: BLE001 - a missing or broken compiler shows in many ways
            reason = f"{type(error).__name__}: {error}"[:500]
            _log.warning("agent.compile_failed", error=reason)
            COMPILATIONS.on_failure(f"An update runs eagerly, it cannot be compiled here: {reason}")
            result = made(arguments, leaves)
        self._made[key] = made
        return result

    def _compile(
        self, key: tuple[object, ...], arguments: tuple[object, ...], leaves: list[Tensor]
    ) -> Code:
        if self._cudagraph or any(not leaf.is_cpu for leaf in leaves):
            apply_determinism()
            whole = torch.compile(
                self._function,
                fullgraph=True,
                dynamic=False,
                mode="reduce-overhead" if self._cudagraph else None,
            )
            return lambda arguments, _: whole(*arguments)
        given, held = _builder(arguments), self._held
        written = 0 if held is None else len(_flatten_tree(arguments[0]).leaves)

        def flat(*tensors: Tensor) -> list[Tensor]:
            parts = list[Tensor]()
            _flatten(self._function(*given(iter(tensors))), parts, [])
            _write(tensors[:written], parts[:written])
            return parts[written:]

        identity = self._identity and f"{self._identity}, {written} in place"
        code, like = machine_code(identity, repr(key), flat, leaves), self._like(*arguments)
        if held is None:
            build = _builder(like)
            return lambda _, leaves: build(iter(code(leaves)))
        beside, make = [_builder(part) for part in like[1:]], getattr(type(like), "_make", tuple)

        def run(arguments: Any, leaves: list[Tensor]) -> Any:
            own = held.writable_state(arguments[0])
            parts = iter(code([*own.leaves, *leaves[written:]]))
            return make([own.tree, *(part(parts) for part in beside)])

        return run


class _Call(NamedTuple):
    setting: tuple[bool, int]
    """Whether deterministic algorithms are enabled, and the number of threads."""
    arguments: tuple[Any, ...]
    """The arguments of the call; their number is the same in each call of a function."""
    leaves: list[Tensor]
    """The tensors of the arguments, in order."""
    code: Code


class _FlatTree(NamedTuple):
    tree: object
    leaves: Sequence[Tensor]
    """The tensors of `tree`, in order."""
    signature: tuple[object, ...]
    """The structure of `tree` and the layout of its tensors, on which compiled code depends."""


def _flatten_tree(tree: object) -> _FlatTree:
    leaves: list[Tensor] = []
    signature: list[object] = []
    _flatten((tree,), leaves, signature)
    return _FlatTree(tree, leaves, tuple(signature))


def _copy_with_strides(tensor: Tensor) -> Tensor:
    """Returns a copy with the same strides, which the compiled code depends on."""
    return torch.empty_strided(
        tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device
    ).copy_(tensor)


def _write(tensors: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    """Copies each value to its tensor; a value may share memory with another of the tensors."""
    own = [_memory(tensor) for tensor in tensors]
    moved = [
        (tensor, value)
        for tensor, value, place in zip(tensors, values, own, strict=True)
        if _memory(value) != place
    ]
    for tensor, value in [
        (tensor, value.clone() if _memory(value) in own else value) for tensor, value in moved
    ]:
        tensor.copy_(value)


def _memory(tensor: Tensor) -> int:
    """Returns an identifier of a tensor's memory that is also valid during tracing."""
    place: int = tensor.untyped_storage()._cdata  # noqa: SLF001 - it has no address then
    return place


def _flatten(tree: Any, leaves: list[Tensor], signature: list[Any]) -> None:
    """Appends the tensors of a nested tuple in order, and its structure and layouts."""
    signature += type(tree), len(tree)
    for part in tree:
        if isinstance(part, Tensor):
            leaves.append(part)
            signature += part.dtype, part.shape, part.stride(), part.device
        else:
            _flatten(part, leaves, signature)


def _builder(tree: Any) -> Builder:
    """Returns a function that builds a nested tuple of the structure of `tree` from tensors."""
    if isinstance(tree, Tensor):
        return next
    parts = [_builder(part) for part in tree]
    make = getattr(type(tree), "_make", tuple)
    return lambda leaves: make([part(leaves) for part in parts])
