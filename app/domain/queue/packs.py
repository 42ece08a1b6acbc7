"""How `resources.pack: auto` divides seeds into packs. Pure."""

from typing import Final, Literal

MAX_SEEDS: Final = 16
"""Most seeds per pack; with more, each update costs more than packing saves."""


def resolve_pack(
    wanted: int | Literal["auto", "off"], seeds: int, slots: int, *, is_packable: bool
) -> int | Literal["off"]:
    """Returns the number of seeds per pack for `auto`; another choice is returned as it is.

    The seeds are spread over the slots: each slot gets a pack before any pack is larger.

    Args:
        wanted: `resources.pack` of the submission.
        seeds: Number of seeds of the submission.
        slots: Slots of the pool's workers; 0 if none is known.
        is_packable: Whether the agent can be trained in packs.
    """
    if wanted != "auto":
        return wanted
    size = min(MAX_SEEDS, -(-seeds // slots)) if slots else MAX_SEEDS
    return size if is_packable and size > 1 else "off"
