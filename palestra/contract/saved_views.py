"""Saved views of the page of runs: its filter, order, columns, groups and board under a name."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, JsonValue, StringConstraints

from palestra.contract.documents import Document, Patch
from palestra.contract.filters import MAX_FILTER
from palestra.contract.list_order import MAX_SORT
from palestra.contract.names import Title
from palestra.contract.views import FieldProblem, View

MAX_KEY: Final = 200
"""Characters of a key of a column."""
MAX_COLUMNS: Final = 50
MAX_GROUP_KEYS: Final = 4
MAX_BOARD: Final = 40
"""Settings of the board."""

Key = Annotated[str, StringConstraints(min_length=1, max_length=MAX_KEY)]
Keys = Annotated[tuple[Key, ...], Field(max_length=MAX_COLUMNS)]
MAX_SETTING: Final = 500
"""Characters of a text of a setting."""
MAX_ITEMS: Final = 100


def _check_setting(value: JsonValue) -> JsonValue:
    items = value if isinstance(value, list) else [value]
    is_text = all(isinstance(item, str) for item in items)
    if not is_text and (isinstance(value, list) or not isinstance(value, int | float)):
        raise ValueError("must be a text, a number, true, false or a list of texts")
    if len(items) > MAX_ITEMS or any(len(str(item)) > MAX_SETTING for item in items):
        raise ValueError(f"must have at most {MAX_ITEMS} texts of at most {MAX_SETTING} characters")
    return value


Setting = Annotated[JsonValue, AfterValidator(_check_setting)]
"""A text, a number, true, false or a list of texts."""


class ViewVisibility(StrEnum):
    """Who sees a view."""

    PRIVATE = "private"
    """Its owner."""
    PROJECT = "project"
    """All members of the project."""


class RunsPageState(Document):
    """What the page of runs shows; members that are left out have the page's defaults."""

    filter: Annotated[str, Field(max_length=MAX_FILTER)] = ""
    """See `palestra.contract.filters`."""
    sort: Annotated[str, Field(max_length=MAX_SORT)] = ""
    """See `palestra.contract.list_order`."""
    columns: Keys | None = None
    pinned: Keys | None = None
    """Columns that stay in place while the others are scrolled."""
    widths: Annotated[
        dict[Key, Annotated[int, Field(ge=1, le=4_000)]], Field(max_length=MAX_COLUMNS)
    ] = Field(default_factory=dict)
    """Widths of columns in pixels."""
    group_by: Annotated[tuple[Key, ...], Field(max_length=MAX_GROUP_KEYS)] = ()
    show: Literal["table", "board", "both"] = "both"
    split: Annotated[int, Field(ge=0, le=100)] | None = None
    """Width of the table as a part of table and board, in percent."""
    board: Annotated[
        dict[Annotated[str, StringConstraints(min_length=1, max_length=32)], Setting],
        Field(max_length=MAX_BOARD),
    ] = Field(default_factory=dict)
    """Settings of the board of charts, by name."""


class SavedViewRequest(Document):
    """A new view."""

    name: Title
    """Unlike those of the caller's other views in the project."""
    visibility: ViewVisibility = ViewVisibility.PRIVATE
    state: RunsPageState


class SavedViewChange(Patch):
    """A change of a view: members that are not set stay as they are."""

    name: Title | None = None
    visibility: ViewVisibility | None = None
    state: RunsPageState | None = None


class SavedViewView(View):
    """A saved view."""

    id: str
    project: str
    """Slug."""
    name: str
    owner: str
    """Login name."""
    visibility: ViewVisibility
    state: RunsPageState
    created_at: datetime
    updated_at: datetime


class SavedViewDetail(SavedViewView):
    """A saved view, and what of it can still be shown."""

    usable_state: RunsPageState
    """The state without the terms and keys that name what no longer exists."""
    problems: tuple[FieldProblem, ...]
    """What was left out of `usable_state`: each names the field, and the nearest one that exists.
    """
