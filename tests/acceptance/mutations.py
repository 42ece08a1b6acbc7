"""The mutations of `tests.acceptance.mutate`: for each, the row whose test must fail."""

from typing import NamedTuple

from tests.acceptance.mutations_async import ASYNC
from tests.acceptance.mutations_estimators import ESTIMATORS
from tests.acceptance.mutations_experiments import EXPERIMENTS
from tests.acceptance.mutations_functional import FUNCTIONAL
from tests.acceptance.mutations_trainer import TRAINER


class Mutation(NamedTuple):
    """One change of the code, and the row whose test must fail."""

    row: str
    what: str
    path: str
    old: str
    """Text to replace, which occurs once in the file."""
    new: str


MUTATIONS: tuple[Mutation, ...] = tuple(
    Mutation(*one) for one in (*ASYNC, *FUNCTIONAL, *TRAINER, *ESTIMATORS, *EXPERIMENTS)
)
