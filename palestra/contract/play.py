"""The document that `palestra play` passes to the player in the worker's packages."""

from typing import Annotated

from pydantic import Field

from palestra.contract.code import Code
from palestra.contract.definition import Definition
from palestra.contract.documents import Document


class PlayOrder(Document):
    """A downloaded snapshot and how to play it. Holds no credential."""

    definition: Definition
    code: Code
    """Code that the experiment was made with; other code is warned of."""
    snapshot: str
    """Directory of the snapshot, named by its id."""
    episodes: Annotated[int, Field(ge=1, le=10_000)]
    seed: Annotated[int, Field(ge=0, lt=2**32)]
    """Seed that the episodes derive from."""
    video: str | None = None
    """File that the episodes are filmed into, one after another.

    `null` shows them on the screen.
    """
    device: str = "cpu"
