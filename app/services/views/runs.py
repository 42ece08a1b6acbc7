"""Views of runs and evaluations, many at a time: a list costs a fixed number of queries.

A list of runs is written as JSON without models in between: of 100 runs these would take longer
than all of their statements. Other views of runs are read from that JSON, so it has one form.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import orjson

from app.db.engine import Session
from app.db.models.curves import EvaluationRow
from app.db.models.experiments import RunRow
from app.db.models.summaries import FindingRow
from app.db.prepared import Plan, carry_out
from app.db.repositories import listed_runs
from app.db.repositories.listed_runs import KnownContents, ListedRuns
from app.services.views.columns import RUN_COLUMNS, build_view, columns_of, construct
from app.services.views.login_names import DELETED_USER
from palestra.contract import telemetry
from palestra.contract.definition import LoopSpec, SupervisedLoop
from palestra.contract.health import FindingView
from palestra.contract.resources import (
    BacklogView,
    EvaluationView,
    RunView,
)
from palestra.contract.sizes import format_count, format_size
from palestra.contract.upgrade import load_definition
from palestra.contract.work_order import Backlog, Failure

RunDocument = dict[str, Any]
"""A `RunView` as JSON, with times and with evaluations that are encoded already."""
Loop = LoopSpec | SupervisedLoop

_KEPT: Final = 2_048
_MAX_BYTES: Final = 4_096
"""Bytes of an evaluation that is kept; one of a thousand episodes is longer."""
_loops: Final = KnownContents[Loop](_KEPT)
_evaluations: Final = KnownContents[orjson.Fragment](_KEPT)
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
    plan = plan_documents([row.id for row in rows], None)
    found = build_documents(await carry_out(session, plan))
    return [RunView.model_validate_json(orjson.dumps(one, option=WRITING)) for one in found]


WRITING: Final = orjson.OPT_UTC_Z
"""How documents of runs are written: times as those of all other answers."""


def plan_documents(run_ids: Sequence[str], project_ids: frozenset[str] | None) -> Plan[ListedRuns]:
    """Reads what `build_documents` needs; see `listed_runs.plan_page`."""
    return listed_runs.plan_page(run_ids, project_ids, _loops, _evaluations)


def build_documents(listed: ListedRuns) -> list[RunDocument]:
    """Returns the runs as lists show them, in their order."""
    loops = dict(listed.definitions)
    for row in listed.new_definitions:
        loops[row.definition_hash] = load_definition(row.definition).loop
        _loops.add(row.definition_hash, loops[row.definition_hash])
    evaluations: dict[str, Any] = dict(listed.evaluations)
    for row in listed.new_evaluations:
        encoded = build_evaluation_view(row).model_dump_json().encode()
        evaluations[row.id] = orjson.Fragment(encoded)
        if len(encoded) <= _MAX_BYTES:
            _evaluations.add(row.id, evaluations[row.id])
    return [
        {
            **columns_of(row, *RUN_COLUMNS, "created_at", "started_at", "finished_at"),
            "failure": _write_failure(row.failure),
            "project": row.slug,
            "created_by": row.user_name or DELETED_USER,
            "progress": _write_progress(row, loops[row.definition_hash]),
            "latest_evaluation": evaluations.get(row.latest_id),
            "best_evaluation": evaluations.get(row.best_id),
            "snapshots": _write_saved(*listed.progress.get(row.id, (None, None))),
            **_write_attempt(listed.attempts.get(row.id)),
            "values": {},
            "findings": [columns_of(one, *_FINDING) for one in listed.findings.get(row.id, ())],
        }
        for row in listed.rows
    ]


_FINDING: Final = tuple(FindingView.model_fields)


def _write_failure(stored: Mapping[str, Any] | None) -> Any:
    if stored is None:
        return None
    return Failure.model_validate(stored, strict=False).model_dump(mode="json")


def _write_saved(written: int | None, verified: int | None) -> Mapping[str, int | None]:
    return {"written": written, "verified": verified}


def _write_attempt(live: Any) -> Mapping[str, Any]:
    """Returns what a run shows of the live attempt that trains it, `None` if there is none."""
    if live is None:
        return {"phase": None, "not_uploaded": None}
    backlog = build_backlog_view(live.backlog)
    return {
        "phase": live.phase,
        "not_uploaded": None if backlog is None else backlog.model_dump(mode="json"),
    }


def build_finding_view(row: FindingRow) -> FindingView:
    """Returns a finding as it crosses the API."""
    return build_view(FindingView, row)


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
    count = f"{format_count(backlog.files, 'file')}, {format_size(backlog.size)}"
    message = f"{what} ({count})" + ("" if backlog.problem is None else f": {backlog.problem}")
    return BacklogView(**backlog.model_dump(), message=message)


def _write_progress(row: Any, loop: Loop) -> Mapping[str, Any]:
    fraction = None if loop.updates is None else row.update / loop.updates
    if isinstance(loop, LoopSpec):
        for done, bound in ((row.env_step, loop.env_steps), (row.episode, loop.episodes)):
            if bound is not None:
                fraction = max(done / bound, fraction or 0.0)
    rate = row.env_steps_per_second
    return {
        "env_step": row.env_step,
        "update": row.update,
        "episode": row.episode,
        "fraction": None if fraction is None else min(1.0, fraction),
        "env_steps_per_second": None if rate is None else telemetry.write_number(rate),
    }


def build_evaluation_view(row: EvaluationRow) -> EvaluationView:
    """Returns an evaluation as it crosses the API.

    The record was validated when it was stored and is again when it is read, the view is not.
    """
    build = _read_evaluation_view if len(row.body) > _MAX_BYTES else _build_evaluation_view
    return build(row.body, *columns_of(row, *_STORED).values())


def _read_evaluation_view(body: str, *stored: Any) -> EvaluationView:
    record = telemetry.Evaluation.model_validate_json(body)
    values = {name: getattr(record, name) for name in _RECORDED}
    values["returns"] = list(record.returns)
    return construct(EvaluationView, {**values, **dict(zip(_STORED, stored, strict=True))})


_build_evaluation_view = lru_cache(maxsize=1_024)(_read_evaluation_view)
"""Keeps short evaluations: a dashboard reads the same ones of a run again and again."""
