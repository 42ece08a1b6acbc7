"""The compiler: a pure function of tensors as machine code, chosen by what its arguments look like and called without anything in between.

`torch.compile` checks with each call whether all that it saw while compiling still holds: half of the time of a small network's update.
Here a function is traced once per *signature* of its arguments, and the key of a dictionary says which code is the right one.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import structlog
import torch
from torch import Tensor

MOST_SIGNATURES: Final = 16
"""Kinds of arguments that one function is compiled for; any more run as they stand, rather than wait for the compiler for ever."""

Builder = Callable[[Iterator[Tensor]], Any]
"""Takes as many tensors as it needs and makes a nested tuple of them."""

_log = structlog.get_logger()


class Compiled:
    """A pure function of nested tuples of tensors, compiled at its first call with arguments of each kind.

    Where this machine cannot compile it, it runs as it stands. That is safe because nothing has happened before the failure: a pure
    function has no effects.

    Args:
        function: What to compile. All that it reads beside its arguments is fixed: it must depend on no state of its own.
        fallback: The same mathematics for machines without a compiler.
        cudagraph: Replay the kernels as one CUDA graph.
    """

    def __init__(self, function: Callable[..., Any], fallback: Callable[..., Any], *, cudagraph: bool = False) -> None:
        self._function = function
        self._fallback = fallback
        self._cudagraph = cudagraph
        self._made: dict[tuple[Any, ...], Callable[[Any, list[Tensor]], Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        leaves: list[Tensor] = []
        signature: list[Any] = [torch.are_deterministic_algorithms_enabled(), torch.get_num_threads()]
        _flatten(arguments, leaves, signature)
        key = tuple(signature)
        made = self._made.get(key)
        return self._first(key, arguments, leaves) if made is None else made(arguments, leaves)

    def _first(self, key: tuple[Any, ...], arguments: tuple[Any, ...], leaves: list[Tensor]) -> Any:
        """Compiles for arguments like these, and returns what the function makes of them."""
        made: Callable[[Any, list[Tensor]], Any] = lambda arguments, _: self._fallback(*arguments)  # noqa: E731
        if len(self._made) >= MOST_SIGNATURES:
            return made(arguments, leaves)
        try:
            quick = self._compiled(arguments, leaves)
            result = quick(arguments, leaves)
            made = quick
        except Exception as error:  # noqa: BLE001 - a missing or broken compiler shows in many ways
            _log.warning("agent.compile_failed", error=f"{type(error).__name__}: {error}"[:500])
            result = made(arguments, leaves)
        self._made[key] = made
        return result

    def _compiled(self, arguments: tuple[Any, ...], leaves: list[Tensor]) -> Callable[[Any, list[Tensor]], Any]:
        # Tells the compiler too, where the process asked for determinism before the compiler was there.
        torch.use_deterministic_algorithms(
            torch.are_deterministic_algorithms_enabled(), warn_only=torch.is_deterministic_algorithms_warn_only_enabled()
        )
        if self._cudagraph or any(not leaf.is_cpu for leaf in leaves):
            whole = torch.compile(self._function, fullgraph=True, dynamic=False, mode="reduce-overhead" if self._cudagraph else None)
            return lambda arguments, _: whole(*arguments)
        code, build = _machine_code(self._function, arguments, leaves)
        return lambda _, leaves: build(iter(code(*leaves)))


def _machine_code(
    function: Callable[..., Any], arguments: tuple[Any, ...], leaves: Sequence[Tensor]
) -> tuple[Callable[..., Sequence[Tensor]], Builder]:
    """Returns a function of leaves like these that returns the leaves of a result, and what makes the result of them."""
    from torch._inductor import standalone_compile  # noqa: PLC0415 - takes as long to load as the rest of torch
    from torch.fx.experimental.proxy_tensor import make_fx  # noqa: PLC0415

    given, found = _builder(arguments), list[Builder]()

    def flat(*tensors: Tensor) -> list[Tensor]:
        result, parts = function(*given(iter(tensors))), list[Tensor]()
        _flatten(result, parts, [])
        found.append(_builder(result))
        return parts

    # One tensor may stand in two places this time, and two the next: each place is traced as a tensor of its own.
    examples: list[Any] = [leaf.detach() for leaf in leaves]
    with torch.no_grad():
        graph = make_fx(flat)(*examples)
        # C++ between the kernels too: Python there takes as long as the kernels of a small network.
        options = {"config_patches": {"cpp_wrapper": True}}
        code = standalone_compile(graph, examples, dynamic_shapes="from_example_inputs", options=options)
    return code, found[-1]


def _flatten(tree: Any, leaves: list[Tensor], signature: list[Any]) -> None:
    """Appends the tensors of a nested tuple in order, and all that code for it depends on."""
    signature += type(tree), len(tree)
    for part in tree:
        if isinstance(part, Tensor):
            leaves.append(part)
            signature += part.dtype, part.shape, part.stride(), part.device
        else:
            _flatten(part, leaves, signature)


def _builder(tree: Any) -> Builder:
    """Returns what makes a nested tuple like this one."""
    if isinstance(tree, Tensor):
        return next
    parts = [_builder(part) for part in tree]
    make = getattr(type(tree), "_make", tuple)
    return lambda leaves: make([part(leaves) for part in parts])
