"""The terms of a filter as SQL conditions on runs and experiments."""

from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import datetime
from operator import ge, gt, le, lt
from typing import Any, Final

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    String,
    and_,
    bindparam,
    case,
    exists,
    false,
    func,
    not_,
    or_,
    select,
    tuple_,
)
from sqlalchemy import any_ as sql_any

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.experiments import ExperimentRow, RunRow
from app.db.models.projects import UserRow
from app.db.models.summaries import DefinitionMemberRow, FindingRow, SetupRow
from app.db.repositories.list_scope import ListScope
from app.db.repositories.statistic_rows import Column, StatisticRows, find_rows, select_over_runs
from app.domain.definition_members import write_text
from app.domain.derived_states import EXPERIMENT_ORDER
from palestra.contract.filters import ANY_FINDING, Age, Operator, Term, Value
from palestra.contract.states import RunState

Condition = ColumnElement[bool]

_COMPARE: Final[Mapping[Operator, Any]] = {"lt": lt, "le": le, "gt": gt, "ge": ge}
_YOUNGER: Final[Mapping[Operator, Any]] = {"lt": gt, "le": ge, "gt": lt, "ge": le}
"""Comparison of the time for that of the age."""

OF_EXPERIMENT: Final[Mapping[str, Column]] = {
    "agent": ExperimentRow.agent,
    "env": ExperimentRow.env,
    "kind": ExperimentRow.kind,
    "name": ExperimentRow.name,
    "experiment": ExperimentRow.id,
}
OF_RUN: Final[Mapping[str, Column]] = {
    "id": RunRow.id,
    "seed": RunRow.seed,
    "env_step": RunRow.env_step,
    "update": RunRow.update,
    "episode": RunRow.episode,
    "cause": RunRow.cause,
    "state": RunRow.state,
    "created": RunRow.created_at,
    "started": RunRow.started_at,
    "finished": RunRow.finished_at,
}
SETUP_FIELDS: Final = frozenset({"agent", "env", "project"})
"""Fields of which an index of summaries holds the values."""


def is_one_of(session: Session, column: Column, values: Sequence[str]) -> Condition:
    """Returns the condition that a text column has one of many values.

    The values are one parameter: a list of parameters takes as long to write as to answer.
    """
    if session.get_bind().dialect.name == "sqlite":
        found = func.json_each(write_text(list(values))).table_valued("value")
        return column.in_(select(found.c.value))
    parameter = bindparam(None, list(values), ARRAY(String), unique=True)
    return column == sql_any(parameter)


def build_run_conditions(terms: Iterable[Term], scope: ListScope) -> list[Condition]:
    """Returns the conditions of terms on `RunRow`, which must all hold."""
    members, others = _split(terms)
    conditions = [_negate(term, _build_for_run(term, scope)) for term in others]
    if members:
        conditions.append(_have_members(members, RunRow.project_id, RunRow.experiment_id))
    return conditions


def build_experiment_conditions(terms: Iterable[Term], scope: ListScope) -> list[Condition]:
    """Returns the conditions of terms on `ExperimentRow`, which must all hold."""
    members, others = _split(terms)
    conditions = [_negate(term, _build_for_experiment(term, scope)) for term in others]
    # Few experiments may have a value: an index finds them, and the other terms are tested on them.
    selective = next(
        (term for term in members if term.operator == "is" and not term.is_negated), None
    )
    if selective is not None:
        conditions.append(_is_found_by_member(selective))
        members.remove(selective)
    if members:
        conditions.append(_have_members(members, ExperimentRow.project_id, ExperimentRow.id))
    return conditions


def _split(terms: Iterable[Term]) -> tuple[list[Term], list[Term]]:
    """Returns the terms on members of the definition, and the others."""
    members: list[Term] = []
    others: list[Term] = []
    for term in terms:
        (members if term.kind == "member" else others).append(term)
    return members, others


def build_setup_condition(term: Term, scope: ListScope) -> Condition:
    """Returns the condition of a term with one of `SETUP_FIELDS` on `SetupRow`."""
    if term.field == "project":
        return _negate(term, SetupRow.project_id.in_(_find_projects(term, scope)))
    column = SetupRow.agent if term.field == "agent" else SetupRow.env
    return _negate(term, _compare_text(column, term))


def is_about_experiment(term: Term) -> bool:
    """Returns whether all runs of an experiment fit a term of a filter of runs, or none."""
    return _is_text(term, OF_EXPERIMENT) or term.kind in {"member", "flag"}


def is_about_setup(term: Term) -> bool:
    """Returns whether a term is about one of `SETUP_FIELDS`."""
    return _is_text(term, SETUP_FIELDS)


def _is_text(term: Term, fields: Container[str]) -> bool:
    """A series or a threshold may have the name of a field."""
    return term.kind == "text" and term.field in fields


def compare_statistic(term: Term, rows: StatisticRows) -> Condition:
    """Returns the condition of a term on rows of its statistic."""
    return rows.condition & _compare(rows.value, term)


def _has_statistic(term: Term, scope: ListScope) -> Condition:
    """Returns the condition that a run has a statistic that fits a term."""
    rows = find_rows(term, scope)
    if rows is None:
        return false()
    found = select(rows.run_id).where(rows.run_id == RunRow.id, compare_statistic(term, rows))
    return found.correlate(RunRow).exists()


def _build_for_run(term: Term, scope: ListScope) -> Condition:
    if term.kind in {"series", "threshold"}:
        return _has_statistic(term, scope)
    if term.field == "":
        return or_(
            *(RunRow.id.contains(str(one).lower(), autoescape=True) for one in term.values),
            _exists_experiment(_build_for_experiment(term, scope)),
        )
    special: dict[str, Any] = {
        "user": lambda: _is_user(RunRow.created_by, term),
        "project": lambda: RunRow.project_id.in_(_find_projects(term, scope)),
        "finding": lambda: _has_finding(term),
    }
    if term.field in special:
        found: Condition = special[term.field]()
        return found
    if is_about_experiment(term):
        return _exists_experiment(_build_for_experiment(term, scope))
    return _compare(OF_RUN[term.field], term)


def _has_finding(term: Term) -> Condition:
    about_run = FindingRow.run_id == RunRow.id
    if ANY_FINDING in term.values:
        return exists().where(about_run)
    return exists().where(about_run, FindingRow.rule.in_(term.values))


def _exists_experiment(condition: Condition) -> Condition:
    found = exists().where(
        ExperimentRow.project_id == RunRow.project_id,
        ExperimentRow.id == RunRow.experiment_id,
        condition,
    )
    # A list that is sorted by a field of experiments joins them beside this.
    return found.correlate(RunRow)


def _build_for_experiment(term: Term, scope: ListScope) -> Condition:
    if term.kind in {"series", "threshold"}:
        return _compare(select_over_runs(term, scope), term)
    if term.field == "":
        return or_(
            *(
                ExperimentRow.name.icontains(one, autoescape=True)
                | ExperimentRow.id.contains(str(one).lower(), autoescape=True)
                for one in term.values
            )
        )
    special: dict[str, Any] = {
        "user": lambda: _is_user(ExperimentRow.created_by, term),
        "project": lambda: ExperimentRow.project_id.in_(_find_projects(term, scope)),
        "archived": lambda: or_(*(_is_archived(bool(one)) for one in term.values)),
        "state": lambda: or_(*(_has_state(RunState(str(one))) for one in term.values)),
        "created": lambda: _compare(ExperimentRow.created_at, term),
        "id": lambda: _compare_text(ExperimentRow.id, term),
    }
    if term.field in special:
        found: Condition = special[term.field]()
        return found
    return _compare(OF_EXPERIMENT[term.field], term)


def _is_found_by_member(term: Term) -> Condition:
    """Returns the condition that an experiment has a member that fits, found by its value."""
    row = DefinitionMemberRow
    found = select(row.project_id, row.experiment_id).where(
        row.path == term.field, _fits_member(term)
    )
    return tuple_(ExperimentRow.project_id, ExperimentRow.id).in_(found)


def _have_members(terms: Sequence[Term], project_id: Any, experiment_id: Any) -> Condition:
    """Returns the condition that the members of an experiment fit all terms.

    The members of an experiment lie beside each other, and each is read once for all terms.
    """
    row = DefinitionMemberRow
    weights: dict[str, Any] = {}
    for term in terms:
        # At most one row of an experiment is of a path: the sum is the number of terms without
        # negation only if each of them fits and no other one does.
        weight = case((_fits_member(term), -1 if term.is_negated else 1), else_=0)
        weights[term.field] = weights[term.field] + weight if term.field in weights else weight
    found = (
        select(func.coalesce(func.sum(case(weights, value=row.path, else_=0)), 0))
        .where(
            row.project_id == project_id,
            row.experiment_id == experiment_id,
            row.path.in_(list(weights)),
        )
        .correlate_except(DefinitionMemberRow)
        .scalar_subquery()
    )
    return found == sum(not term.is_negated for term in terms)


def _fits_member(term: Term) -> Condition:
    return or_(*(_compare_member(term, value) for value in term.values))


def _compare_member(term: Term, value: Value) -> Condition:
    row = DefinitionMemberRow
    if term.operator == "contains":
        return row.text.icontains(value, autoescape=True)
    if term.operator != "is":
        found: Condition = _COMPARE[term.operator](row.number, value)
        return found
    try:
        return or_(row.text == value, row.number == float(str(value)))
    except ValueError:
        return row.text == value


def _is_archived(archived: bool) -> Condition:
    column = ExperimentRow.archived_at
    return column.is_not(None) if archived else column.is_(None)


def _has_state(state: RunState) -> Condition:
    """The rule of `app.domain.derived_states.derive_experiment_state` as an SQL condition."""
    same_experiment = (
        RunRow.project_id == ExperimentRow.project_id,
        RunRow.experiment_id == ExperimentRow.id,
    )
    before = EXPERIMENT_ORDER[: EXPERIMENT_ORDER.index(state)]
    return and_(
        exists().where(*same_experiment, RunRow.state == state),
        ~exists().where(*same_experiment, RunRow.state.in_(before)),
    )


def _is_user(column: Column, term: Term) -> Condition:
    return column.in_(select(UserRow.id).where(_compare_text(UserRow.name, term)))


def _find_projects(term: Term, scope: ListScope) -> list[str]:
    def fits(slug: str) -> bool:
        values = [str(value) for value in term.values]
        if term.operator == "contains":
            return any(value.lower() in slug for value in values)
        return slug in values

    return [project_id for project_id, slug in scope.slugs.items() if fits(slug)]


def _compare(column: Any, term: Term) -> Condition:
    if term.kind == "time":
        return or_(*(_compare_time(column, term.operator, value) for value in term.values))
    if term.operator in _COMPARE:
        return or_(*(_COMPARE[term.operator](column, value) for value in term.values))
    return _compare_text(column, term)


def _compare_time(column: Any, operator: Operator, value: Value) -> Condition:
    if isinstance(value, Age):
        found: Condition = _YOUNGER[operator](column, db_now(-value.seconds))
        return found
    assert isinstance(value, datetime)
    compared: Condition = _COMPARE[operator](column, value)
    return compared


def _compare_text(column: Any, term: Term) -> Condition:
    if term.operator == "contains":
        return or_(*(column.icontains(value, autoescape=True) for value in term.values))
    found: Condition = column.in_(term.values)
    return found


def _negate(term: Term, condition: Condition) -> Condition:
    """Returns a condition or its opposite; a row without the value fits the opposite."""
    return not_(func.coalesce(condition, false())) if term.is_negated else condition
