"""Arrays of slots that several objects share, such as the members of a pack."""

from collections.abc import Sequence
from typing import Any


def give_views(
    whole: Any, parts: Sequence[Any], names: Sequence[str], *, last: bool = False
) -> None:
    """Copies the slots of some objects into a whole, and leaves them views of its arrays.

    Args:
        whole: Has an array of every name.
        parts: Have arrays of the same names for `num_envs` slots each, together as many as the
            whole.
        names: Attributes.
        last: Slots are the last dimension of each array; else the first.
    """
    begin = 0
    for part in parts:
        end = begin + part.num_envs
        for name in names:
            view = getattr(whole, name)[(..., slice(begin, end)) if last else slice(begin, end)]
            view[...] = getattr(part, name)
            setattr(part, name, view)
        begin = end
