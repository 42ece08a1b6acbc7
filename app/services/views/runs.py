"""Views of runs and evaluations, many at a time: a list costs a fixed number of queries."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from app.db.engine import Session
from app.db.models.curves import EvaluationRow
from app.db.models.experiments import RunRow
from app.db.models.summaries import FindingRow
from app.db.repositories import findings as finding_rows
from app.db.repositories import listed_runs
from app.services.views.columns import RUN_COLUMNS, build_view, columns_of, construct
from app.services.views.login_names import DELETED_USER
from palestra.contract import telemetry
from palestra.contract.definition import LoopSpec, SupervisedLoop
from palestra.contract.health import FindingView
from palestra.contract.resources import (
    BacklogView,
    EvaluationView,
    ProgressView,
    RunView,
    SnapshotProgressView,
)
from palestra.contract.sizes import format_size
from palestra.contract.upgrade import load_definition
from palestra.contract.work_order import Backlog

_STORED: Final = (
    "id", "run_id", "job_id", "attempt_id", "snapshot_id", "superseded", "created_at",
)  # fmt: skip
"""Members of the view of an evaluation that are columns of its row."""
_RECORDED: Final = tuple(set(EvaluationView.model_fields) - {*_STORED, "returns"})
"""Its members that are those of the stored record."""


async def run_views(session: Session, rows: Sequence[RunRow]) -> list[RunView]:
    """Returns the views of runs in the order of their rows."""
    if not rows:
        return []
    ids = [row.id for row in rows]
    parts = await listed_runs.load_parts(session, rows)
    findings = await finding_rows.load(session, ids)
    loops = {key: _read_loop(raw) for key, raw in parts.definitions.items()}
    return [
        _run_view(
            row,
            {
                "created_by": parts.users.get(row.created_by, DELETED_USER),
                "project": parts.slugs[row.project_id],
            },
            loops[row.project_id, row.experiment_id],
            *parts.evaluations.get(row.id, (None, None)),
            saved=parts.progress.get(row.id, (None, None)),
            backlog=parts.backlogs.get(row.id),
            findings=findings.get(row.id, ()),
        )
        for row in rows
    ]


@lru_cache(maxsize=2_048)
def _read_loop(definition: str) -> LoopSpec | SupervisedLoop:
    """Returns the loop of a stored definition; lists read the same ones again and again."""
    return load_definition(definition).loop


def _run_view(  # noqa: PLR0913 - three positional ones of one kind; the rest is named
    row: RunRow,
    named: Mapping[str, str],
    loop: LoopSpec | SupervisedLoop,
    latest: EvaluationRow | None,
    best: EvaluationRow | None,
    *,
    saved: tuple[int | None, int | None],
    backlog: Mapping[str, Any] | None,
    findings: Sequence[FindingRow],
) -> RunView:
    return build_view(
        RunView,
        {
            **columns_of(row, *RUN_COLUMNS, "created_at", "started_at", "finished_at"),
            **named,
            "progress": _progress(row, loop),
            "latest_evaluation": None if latest is None else build_evaluation_view(latest),
            "best_evaluation": None if best is None else build_evaluation_view(best),
            "snapshots": SnapshotProgressView(written=saved[0], verified=saved[1]),
            "not_uploaded": build_backlog_view(backlog),
            "findings": [build_finding_view(one) for one in findings],
        },
    )


def build_finding_view(row: FindingRow) -> FindingView:
    """Returns a finding as it crosses the API."""
    return FindingView(**columns_of(row, "rule", "sentence", "remedy", "series", "env_step"))


def build_backlog_view(stored: Mapping[str, Any] | None) -> BacklogView | None:
    """Returns the public form of an attempt's `Backlog`.

    `None` while nothing is wrong: uploads continue during the training.
    """
    if not stored:
        return None
    backlog = Backlog(**stored)
    if not backlog.delivering and backlog.problem is None:
        return None
    what = "result not uploaded yet" if backlog.delivering else "snapshots not uploaded yet"
    count = f"{backlog.files} file{'' if backlog.files == 1 else 's'}, {format_size(backlog.size)}"
    message = f"{what} ({count})" + ("" if backlog.problem is None else f": {backlog.problem}")
    return BacklogView(**backlog.model_dump(), message=message)


def _progress(row: RunRow, loop: LoopSpec | SupervisedLoop) -> ProgressView:
    bounds: tuple[tuple[int, int | None], ...] = ((row.update, loop.updates),)
    if isinstance(loop, LoopSpec):
        bounds += ((row.env_step, loop.env_steps), (row.episode, loop.episodes))
    fraction = max((done / bound for done, bound in bounds if bound is not None), default=None)
    return ProgressView(
        env_step=row.env_step,
        update=row.update,
        episode=row.episode,
        fraction=None if fraction is None else min(1.0, fraction),
        env_steps_per_second=row.env_steps_per_second,
    )


def build_evaluation_view(row: EvaluationRow) -> EvaluationView:
    """Returns an evaluation as it crosses the API.

    The record was validated when it was stored and is again when it is read, the view is not.
    """
    return _build_evaluation_view(row.body, *(getattr(row, name) for name in _STORED))


@lru_cache(maxsize=1_024)
def _build_evaluation_view(body: str, *stored: Any) -> EvaluationView:
    """Returns an evaluation; a dashboard reads the same ones again with each event of a list."""
    record = telemetry.Evaluation.model_validate_json(body)
    values = {name: getattr(record, name) for name in _RECORDED}
    values["returns"] = list(record.returns)
    return construct(EvaluationView, {**values, **dict(zip(_STORED, stored, strict=True))})
