"""The audit log as it crosses the API."""

import re
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import AwareDatetime, BeforeValidator, Field

from palestra.contract.documents import Document
from palestra.contract.views import View

AuditOutcome = Literal["allowed", "refused"]

_WRITTEN: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)")


def _refuse_numbers(text: object) -> object:
    """Refuses numbers, which could be seconds or milliseconds, and times without a zone."""
    if not isinstance(text, datetime) and not _WRITTEN.fullmatch(str(text)):
        raise ValueError("must be a time with its zone, such as 2026-03-01T12:00:00Z")
    return text


WrittenTime = Annotated[AwareDatetime, Field(strict=False), BeforeValidator(_refuse_numbers)]
"""A time as RFC 3339 writes it, with its zone."""


class AuditQuery(Document):
    """A filter of the audit log's entries; a member that is `None` takes all."""

    user: Annotated[str, Field(max_length=64)] | None = None
    """ID or name of a user."""
    object_type: Annotated[str, Field(max_length=200)] | None = None
    object_id: Annotated[str, Field(max_length=200)] | None = None
    action: Annotated[str, Field(max_length=64)] | None = None
    """The action, or what it begins with."""
    outcome: AuditOutcome | None = None
    since: WrittenTime | None = None
    until: WrittenTime | None = None
    """Exclusive."""


class AuditEntry(View):
    """An entry of the audit log: who did what to which object, when, from where.

    `hash` is the SHA-256 of the canonical JSON of the other members, without `user` and without
    those that are `null`, with `at` as whole microseconds since the Unix epoch.
    """

    id: int
    """Counts from 1 without gaps, in the order of the commits."""
    at: datetime
    actor: str
    """`user:ID`, `token:ID`, `attempt:ID`, `worker:ID`, `daemon:NAME` or `anonymous`."""
    user_id: str | None
    """The person: who was logged in, or held the token, or whose login was tried."""
    user: str | None = None
    """The person's present name; `null` once the person is deleted."""
    credential: str | None
    """ID of the login, token, worker or attempt."""
    address: str | None
    """Address from which the request came."""
    project_id: str | None
    """`null` for what concerns the whole server."""
    action: str
    """Type of the object and what was done, for example `token.revoke`."""
    object_type: str
    object_id: str
    outcome: AuditOutcome
    code: str | None
    """Code of the refusal."""
    count: int
    """Number of refusals of one credential and route within a minute; else 1."""
    data: dict[str, Any]
    """What changed."""
    previous_hash: str
    """Hash of the entry before this one; 64 zeros in the first."""
    hash: str


class AuditFault(View):
    """The first entry at which the chain of the audit log is broken."""

    kind: Literal["changed", "missing", "replaced", "added", "end_lost", "checkpoint"]
    entry: int
    message: str


class AuditVerification(View):
    """The result of a verification of the audit log."""

    entries: int
    """Entries that were checked."""
    removed: int = Field(ge=0)
    """Entries that the retention rule removed before them."""
    last_id: int
    """The last entry; 0 for none."""
    last_hash: str
    """Its hash. Noted elsewhere, it shows later that nothing before it was rewritten."""
    fault: AuditFault | None
    """`null` if the chain is intact."""
