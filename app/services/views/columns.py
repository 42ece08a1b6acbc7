"""Views made of the columns of rows."""

from typing import Any, Final, TypeVar

from palestra.contract.views import View

_View = TypeVar("_View", bound=View)

RUN_COLUMNS: Final = (
    "id",
    "experiment_id",
    "seed",
    "replicate",
    "state",
    "cause",
    "failure",
    "fence",
    "resume_quality",
    "job_id",
)
"""Columns that views and events of runs take over as they are; events have their times as text."""


def build_view(kind: type[_View], row: object, /, **members: Any) -> _View:
    """Returns the view of a row: its columns are the view's members of their names.

    Views have tuples where columns hold lists. The values were validated before they were stored.

    Args:
        kind: The view.
        row: Has an attribute for each member that has no default and is not among `members`.
        members: Members that are no columns, or not as the column is; a member that is a view
            may be given as an object with that view's attributes.
    """
    names = kind.model_fields.keys() - members.keys()
    columns = {name: getattr(row, name) for name in names if hasattr(row, name)}
    return kind.model_validate({**columns, **members}, strict=False, from_attributes=True)


def construct(kind: type[_View], values: dict[str, Any]) -> _View:
    """Returns a view of values that are valid already.

    It is `model_construct` of a view without aliases and private members, which looks for the value
    of each field in a loop: of 200 evaluations that takes longer than to read them.

    Args:
        kind: The view.
        values: All of its fields.
    """
    view = kind.__new__(kind)
    object.__setattr__(view, "__dict__", {name: values[name] for name in kind.model_fields})
    object.__setattr__(view, "__pydantic_fields_set__", set(kind.model_fields))
    object.__setattr__(view, "__pydantic_extra__", None)
    object.__setattr__(view, "__pydantic_private__", None)
    return view


def columns_of(row: object, *names: str) -> dict[str, Any]:
    """Returns columns of a row by their names, for documents that are no views."""
    return {name: getattr(row, name) for name in names}
