"""Which runs and experiments a list shows: members that have parameters of their own. Pure."""

from dataclasses import dataclass

from palestra.contract.filters import Term
from palestra.contract.states import RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Filter of the list of runs; a member that is `None` takes all.

    Attributes:
        experiment_id: ID of an experiment.
        state: State of the runs.
        user: Login name of who submitted them.
        filter: A filter (`palestra.contract.filters`); all of its terms must hold too.
        columns: Further fields whose values are returned with each run.
    """

    experiment_id: str | None = None
    state: RunState | None = None
    user: str | None = None
    filter: str = ""
    columns: tuple[str, ...] = ()

    def list_terms(self) -> list[Term]:
        """Returns the members but `filter` as terms of a filter."""
        found = [_is("experiment", self.experiment_id), _is("user", self.user)]
        if self.state is not None:
            found.append(Term("state", "choice", "is", (self.state,), 0))
        return [term for term in found if term is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentFilter:
    """Filter of the list of experiments; a member that is `None` takes all.

    Attributes:
        state: State of the experiments.
        agent: Name of the agent.
        env: ID of the environment.
        text: Substring of the name or of the ID, ignoring case.
        archived: Whether they are archived; a term on `archived` in `filter` replaces it.
        user: Login name of who submitted them.
        filter: A filter (`palestra.contract.filters`); all of its terms must hold too.
        columns: Further fields whose values are returned with each experiment.
    """

    state: RunState | None = None
    agent: str | None = None
    env: str | None = None
    text: str | None = None
    archived: bool | None = False
    user: str | None = None
    filter: str = ""
    columns: tuple[str, ...] = ()

    def list_terms(self, *, names_archived: bool) -> list[Term]:
        """Returns the members but `filter` as terms of a filter.

        Args:
            names_archived: Whether `filter` has a term on `archived`.
        """
        found = [_is("agent", self.agent), _is("env", self.env), _is("user", self.user)]
        if self.state is not None:
            found.append(Term("state", "choice", "is", (self.state,), 0))
        if self.text:
            found.append(Term("", "text", "contains", (self.text,), 0))
        if self.archived is not None and not names_archived:
            found.append(Term("archived", "flag", "is", (self.archived,), 0))
        return [term for term in found if term is not None]


def _is(field: str, value: str | None) -> Term | None:
    return None if value is None else Term(field, "text", "is", (value,), 0)
