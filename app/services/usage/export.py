"""The usage of a period as CSV (RFC 4180), sent in pieces."""

import csv
import io
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime
from typing import Final

from app.db import clock
from app.db.engine import BACKGROUND_STATEMENT_SECONDS, Database
from app.domain.principal import Principal
from app.domain.usage_periods import UsagePeriod
from app.services.usage.reports import Key, UsedByGroup, choose_filter, choose_period, load_groups
from palestra.contract.usage import UsageQuery

_PIECE: Final = 32
"""Buckets that are summed by one query."""
_FORMULA: Final = re.compile(r"[=+\-@\t\r]")
"""How a cell begins that a spreadsheet would take for a formula."""
_AMOUNTS: Final = ("used_device_seconds", "gpu_seconds", "lost_device_seconds")


async def export(
    database: Database, principal: Principal, query: UsageQuery
) -> AsyncIterator[bytes]:
    """Returns the lines of a report: one for each group in each part of the period, in its order.

    A faulty query is refused before the first line.

    Raises:
        InvalidError: As `app.services.usage.reports.report`.
    """
    async with database.read() as session:
        now = await clock.now(session)
        period = choose_period(query, now)
        await choose_filter(session, principal, query)
    return _iterate_pieces(database, principal, query, period, now)


async def _iterate_pieces(
    database: Database,
    principal: Principal,
    query: UsageQuery,
    period: UsagePeriod,
    now: datetime,
) -> AsyncIterator[bytes]:
    yield _encode([("start", "end", *(key.value for key in query.by), *_AMOUNTS)])
    for first in range(0, period.buckets, _PIECE):
        last = min(first + _PIECE, period.buckets) - 1
        piece = UsagePeriod(
            since=period.start_of(first),
            until=period.end_of(last),
            bucket_seconds=period.bucket_seconds,
        )
        async with database.read(BACKGROUND_STATEMENT_SECONDS) as session:
            wanted = await choose_filter(session, principal, query)
            groups = await load_groups(session, query.by, wanted, piece, now)
        lines = list(_list_lines(groups, piece))
        if lines:
            yield _encode(lines)


def _list_lines(groups: dict[Key, UsedByGroup], period: UsagePeriod) -> Iterator[Sequence[str]]:
    ordered = sorted(groups, key=lambda key: tuple(map(str, key)))
    for index in range(period.buckets):
        times = (f"{period.start_of(index):%FT%TZ}", f"{period.end_of(index):%FT%TZ}")
        for key in ordered:
            amount = groups[key].buckets.get(index)
            if amount is not None:
                seconds = (f"{value:.3f}" for value in (amount.used, amount.gpu, amount.lost))
                yield (*times, *(_quote(value) for value in key), *seconds)


def _quote(value: str | None) -> str:
    text = value or ""
    return f"'{text}" if _FORMULA.match(text) else text


def _encode(lines: Sequence[Sequence[str]]) -> bytes:
    target = io.StringIO(newline="")
    csv.writer(target).writerows(lines)
    return target.getvalue().encode()
