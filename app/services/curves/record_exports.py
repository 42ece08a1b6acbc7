"""Exports all points, episodes, evaluations or epochs of runs, in pieces and with bounded memory.

Each run is exported as one state of the database has it when its turn comes: what arrives later is
left out. No transaction stays open between two pieces.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from app.db.engine import BACKGROUND_STATEMENT_SECONDS, Database, Session
from app.db.repositories import queried_runs
from app.domain.errors import InvalidError, TooLargeError, TooManyRequestsError
from app.domain.principal import Principal
from app.metrics.grid import to_coordinates
from app.metrics.sort_records import parse_evaluation_series
from app.services.curves import visible_runs
from app.services.curves.selection import have_ended
from palestra.contract.problems import suggest_nearest
from palestra.contract.record_exports import RecordFormat, RecordQuery

if TYPE_CHECKING:
    from app.services.curves.record_rows import ExportedRuns

MAX_RUNS: Final = 10_000
"""Runs of one export."""
MAX_RUNNING: Final = 8
"""Exports that a server process makes at once."""
MAX_RUNNING_PER_USER: Final = 2
RETRY_SECONDS: Final = 5
_PIECE_ROWS: Final[Mapping[RecordFormat, int]] = {"csv": 16_384, "parquet": 65_536, "arrow": 65_536}
"""Most rows of a piece of a file; those of CSV take ten times the memory while they are written."""
_PIECE_BYTES: Final = 2**24
"""Bytes of rows after which a piece is written: evaluations may hold many returns."""


@dataclass(slots=True)
class RunningExports:
    """Counts the exports that a server process makes, by person (`Principal.person_id`)."""

    users: Counter[str] = field(default_factory=Counter)

    def begin(self, user_id: str) -> None:
        """Counts another export of a user.

        Raises:
            TooManyRequestsError: `too_many_exports`.
        """
        if self.users[user_id] >= MAX_RUNNING_PER_USER or sum(self.users.values()) >= MAX_RUNNING:
            message = (
                f"A user may run {MAX_RUNNING_PER_USER} exports at once, all users of a server "
                f"{MAX_RUNNING}. Wait for one to end, and name several runs in one export."
            )
            raise TooManyRequestsError("too_many_exports", message, retry_after=RETRY_SECONDS)
        self.users[user_id] += 1

    def end(self, user_id: str) -> None:
        """Counts an export of a user as ended."""
        self.users[user_id] -= 1
        if not self.users[user_id]:
            del self.users[user_id]


class RecordExport:
    """A file that is being exported, piece by piece.

    Args:
        pieces: Yields the pieces of the file.
        running: Where the export is counted until `close` is called.
        user_id: The person as whom the caller counts.
    """

    def __init__(
        self, pieces: AsyncGenerator[bytes], running: RunningExports, user_id: str
    ) -> None:
        self._pieces = pieces
        self._running = running
        self._user_id = user_id
        self._first = b""
        self._is_open = True

    async def begin(self) -> None:
        """Makes the first piece, so that a wrong request is refused before the answer begins."""
        try:
            self._first = await anext(self._pieces)
        except BaseException:
            await self.close()
            raise

    async def read(self) -> AsyncIterator[bytes]:
        """Yields the pieces."""
        yield self._first
        async for piece in self._pieces:
            yield piece

    async def close(self) -> None:
        """Ends the export, whether or not all pieces were read."""
        if self._is_open:
            self._is_open = False
            self._running.end(self._user_id)
            await self._pieces.aclose()


async def export(
    database: Database,
    principal: Principal,
    wanted: RecordQuery,
    form: RecordFormat,
    running: RunningExports,
) -> RecordExport:
    """Returns the file with its first piece; the caller reads and closes it.

    Raises:
        NotFoundError: If the caller's projects lack one of the runs or experiments.
        InvalidError: `empty_selection`, `invalid_range`, `unknown_series`, `computed_series`,
            `unknown_column`, or `range_without_data`.
        TooLargeError: If there are too many runs.
        TooManyRequestsError: If too many exports are running.
    """
    running.begin(principal.person_id)
    found = RecordExport(_export(database, principal, wanted, form), running, principal.person_id)
    await found.begin()
    return found


async def _export(
    database: Database, principal: Principal, wanted: RecordQuery, form: RecordFormat
) -> AsyncGenerator[bytes]:
    # These load pyarrow, which takes 30 MB, and most servers never export.
    from app.services.curves import record_files, record_rows  # noqa: PLC0415

    schema = record_files.SCHEMAS[wanted.kind]
    _check_columns(wanted, schema.names)
    schema = record_files.select_columns(schema, wanted.columns)
    async with database.read(BACKGROUND_STATEMENT_SECONDS) as session:
        exported = await _select(session, principal, wanted)
    rows = record_rows.RecordRows(database, wanted, exported, schema)
    file = record_files.open_file(form, schema)
    kept: list[Any] = []
    is_empty = True
    async for batch in rows.read():
        kept.append(batch)
        is_empty = False
        if _is_enough(kept, form):
            for piece in record_files.cut_batches(kept, _PIECE_ROWS[form]):
                yield await asyncio.to_thread(file.write, piece)
            kept.clear()
    if is_empty:
        _check_range(wanted, exported, rows.span)
    if kept:
        yield await asyncio.to_thread(file.write, record_files.join_batches(kept))
    yield file.close()


def _is_enough(batches: Sequence[Any], form: RecordFormat) -> bool:
    rows = sum(int(one.num_rows) for one in batches)
    return rows >= _PIECE_ROWS[form] or sum(int(one.nbytes) for one in batches) >= _PIECE_BYTES


async def _select(session: Session, principal: Principal, wanted: RecordQuery) -> "ExportedRuns":
    from app.services.curves.record_rows import ExportedRuns  # noqa: PLC0415 - see `_export`

    if wanted.start is not None and wanted.end is not None and wanted.start > wanted.end:
        raise InvalidError("invalid_range", "start must not be above end", pointer="query/start")
    if not wanted.runs and not wanted.experiments:
        raise InvalidError(
            "empty_selection", "names no runs: give run or experiment", pointer="query/run"
        )
    run_ids = [*wanted.runs]
    for experiment_id in wanted.experiments:
        run_ids += await visible_runs.list_ids(session, principal, experiment_id, MAX_RUNS + 1)
    run_ids = list(dict.fromkeys(run_ids))
    if len(run_ids) > MAX_RUNS:
        raise TooLargeError(
            "export_too_large", f"At most {MAX_RUNS} runs. Export fewer experiments at once."
        )
    runs = await visible_runs.load(session, principal, run_ids)
    names = await queried_runs.list_names(session, run_ids)
    if wanted.kind == "points":
        _check_series(wanted, names, is_complete=have_ended(runs.values()))
    chosen = names.intersection(wanted.series) if wanted.series else names
    return ExportedRuns(run_ids, runs, sorted(chosen))


def _check_series(wanted: RecordQuery, names: set[str], *, is_complete: bool) -> None:
    """Refuses names that no run has; a run that has not ended may get them later."""
    for name in wanted.series:
        if name in names:
            continue
        if parse_evaluation_series(name) is not None:
            raise InvalidError(
                "computed_series",
                "is computed from evaluations: export the kind evaluations",
                pointer="query/series",
            )
        if is_complete and names:
            raise InvalidError(
                "unknown_series",
                f"is not a series of these runs{suggest_nearest(name, sorted(names))}",
                pointer="query/series",
            )


def _check_columns(wanted: RecordQuery, known: Sequence[str]) -> None:
    for name in wanted.columns:
        if name not in known:
            near = suggest_nearest(name, known) or f": give {', '.join(known)}"
            raise InvalidError(
                "unknown_column", f"is no column of {wanted.kind}{near}", pointer="query/column"
            )


def _check_range(
    wanted: RecordQuery, exported: "ExportedRuns", span: tuple[int, int] | None
) -> None:
    """Refuses a range without rows, unless one of the runs may still get rows there."""
    if span is None or not have_ended(exported.runs.values()):
        return
    low, high = to_coordinates(wanted.x, np.array(span, np.float64)).tolist()
    raise InvalidError(
        "range_without_data",
        f"leaves no row: the {wanted.kind} are from {low:.15g} to {high:.15g} of {wanted.x}",
        pointer="query/end" if wanted.start is None else "query/start",
    )
