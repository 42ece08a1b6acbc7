"""The shape of every HTTP answer: views, pages and problem details."""

from typing import Generic, TypeVar

from pydantic import ConfigDict, Field

from palestra.contract.attribute_descriptions import DescribedModel

Item = TypeVar("Item")


class View(DescribedModel):
    """Base class of the answers of the API.

    Readers ignore members that they do not know, so that a newer server may add some
    (`answers.py`).
    """

    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="strings")


class Page(View, Generic[Item]):
    """One page of a list."""

    items: list[Item]
    next_cursor: str | None
    """Pass as `cursor` for the next page; `null` on the last."""


class FieldProblem(View):
    """One invalid field of a request."""

    pointer: str
    """JSON pointer to the faulty member (RFC 6901)."""
    code: str
    message: str


class SubmissionWarning(View):
    """A warning about an accepted submission."""

    code: str
    pointer: str
    """JSON pointer to the member of the submission (RFC 6901)."""
    message: str


class Problem(View):
    """Problem details (RFC 9457)."""

    type: str
    title: str
    status: int
    code: str
    """Stable; programs decide by it."""
    detail: str
    """A sentence a user can act on."""
    instance: str | None = None
    request_id: str
    errors: list[FieldProblem] = Field(default_factory=list)
    expected_seq: int | None = None
    """With `seq_gap`: the record that the server waits for."""
    busy_slots: list[int] | None = None
    """With `slot_busy`: the claimed slots that have an attempt."""
    position: int | None = None
    """With the faults of a filter: index of the faulty character."""
