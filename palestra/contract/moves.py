"""Moves of experiments between projects as they cross the API."""

from palestra.contract.documents import Document
from palestra.contract.names import Slug
from palestra.contract.views import View


class MoveRequest(Document):
    """A request to move an experiment to another project."""

    to: Slug
    """Slug of the other project."""


class ExperimentMoved(View):
    """Data of the event `moved`, which each of the two projects of a move receives."""

    id: str
    """ID of the experiment."""
    project: str
    """Slug of the project that receives the event; the other one is not named."""
    has_left: bool
    """Whether the experiment left this project; otherwise it came to it."""
