"""Shares arrays of slots between a joined object and its parts, such as the members of a pack."""

from collections.abc import Sequence
from typing import Any


def give_views(
    whole: Any, parts: Sequence[Any], names: Sequence[str], *, are_slots_last: bool = False
) -> None:
    """Copies the arrays of `parts` into those of `whole` and replaces them by views of `whole`.

    Args:
        whole: Object with an array under each name.
        parts: Objects with arrays under the same names, of `num_envs` slots each; `whole` has as
            many slots as all parts together.
        names: Names of the attributes that hold the arrays.
        are_slots_last: Whether slots are the last dimension of the arrays; otherwise they are the
            first.
    """
    begin = 0
    for part in parts:
        end = begin + part.num_envs
        for name in names:
            view = getattr(whole, name)[
                (..., slice(begin, end)) if are_slots_last else slice(begin, end)
            ]
            view[...] = getattr(part, name)
            setattr(part, name, view)
        begin = end
