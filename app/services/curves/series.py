"""Curves of a run on one common grid, without the points that later attempts superseded."""

import math
from collections.abc import Collection, Sequence

from app.db.engine import Session
from app.db.models.curves import SeriesRow
from app.db.repositories import blocks as rows
from app.db.repositories import experiments as experiment_rows
from app.db.repositories import snapshots as snapshot_rows
from app.db.repositories import telemetry as telemetry_rows
from app.domain.principal import Principal
from app.metrics import fence_chain
from app.metrics.fence_chain import Chain, Link, Position
from app.metrics.sort_records import STATISTICS, VIRTUAL
from app.services.runs import runs
from palestra.contract.queries import SeriesInfo
from palestra.contract.telemetry import Evaluation
from palestra.contract.views import Page


async def list_for_run(
    session: Session, principal: Principal, run_id: str, *, after: str, limit: int
) -> Page[SeriesInfo]:
    """Returns a page of a run's series by name, including those computed from its evaluations.

    Raises:
        NotFoundError: If the project has no such run.
    """
    run = await runs.find(session, principal, run_id)
    stored = await rows.list_series_for_run(session, run.id, after, limit + 1)
    found = [_info(row) for row in stored] + [
        info for info in await _virtual(session, run.id) if info.name > after
    ]
    shown = sorted(found, key=lambda info: info.name)[: limit + 1]
    return Page(
        items=shown[:limit], next_cursor=shown[limit - 1].name if len(shown) > limit else None
    )


def _info(row: SeriesRow) -> SeriesInfo:
    last = float(row.last_value)
    return SeriesInfo(
        name=row.name,
        points=row.points,
        nonfinite=row.nonfinite,
        last_env_step=row.last_env_step,
        last_value=last,
    )


async def _virtual(session: Session, run_id: str) -> list[SeriesInfo]:
    bodies = [
        Evaluation.model_validate_json(row.body)
        for row in await rows.list_evaluations(session, [run_id], superseded=False)
    ]
    found: list[SeriesInfo] = []
    for prefix, source in VIRTUAL.items():
        of_source = sorted(
            (body for body in bodies if body.source is source),
            key=lambda body: (body.env_step, body.update),
        )
        infos = (
            _summarise_evaluations(f"{prefix}/{name}", of_source, name)
            for name in list_statistics(of_source)
        )
        found += [info for info in infos if info is not None]
    return found


def _summarise_evaluations(
    series: str, bodies: Sequence[Evaluation], statistic: str
) -> SeriesInfo | None:
    """Returns the summary of a series of evaluations, `None` if none of them has the statistic.

    For example, no evaluation has a success rate where the environment reports no success.
    """
    values = [
        (body.env_step, value)
        for body in bodies
        if (value := read_statistic(body, statistic)) is not None
    ]
    if not values:
        return None
    nonfinite = sum(not math.isfinite(value) for _, value in values)
    last_env_step, last_value = values[-1]
    return SeriesInfo(
        name=series,
        points=len(values),
        nonfinite=nonfinite,
        last_env_step=last_env_step,
        last_value=last_value,
    )


def read_statistic(evaluation: Evaluation, name: str) -> float | None:
    """Returns a statistic of an evaluation's episodes, or a metric of a supervised one.

    `None` if the evaluation has no statistic of that name.
    """
    if name in STATISTICS:
        value: float | None = getattr(evaluation, name)
        return value
    return evaluation.metrics.get(name)


def list_statistics(evaluations: Sequence[Evaluation]) -> Sequence[str]:
    """Returns the statistics that have a curve: all statistics of episodes.

    Of supervised evaluations, the metrics and the mean, which is the score, have a curve.
    """
    metrics = sorted({name for one in evaluations for name in one.metrics} - set(STATISTICS))
    return ("mean", *metrics) if metrics else STATISTICS


async def load_histories(session: Session, run_ids: Collection[str]) -> dict[str, Chain]:
    """Returns the fence chain of each run; an empty one where no training attempt was made."""
    links: dict[str, list[Link]] = {run_id: [] for run_id in run_ids}
    for run_id, fence, resumed, env_step, update in await snapshot_rows.list_links(
        session, run_ids
    ):
        at = (
            None
            if resumed is None or env_step is None or update is None
            else Position(env_step, update)
        )
        links[run_id].append(Link(fence, resumed, at))
    return {run_id: fence_chain.build_chain(of_run) for run_id, of_run in links.items()}


async def supersede(session: Session, run_id: str) -> None:
    """Marks snapshots and evaluations that are no longer part of the run's history.

    Called by every claim that raises the run's fence.

    The fence chain decides for snapshots and for evaluations made during training; an evaluation of
    a snapshot is superseded exactly when its snapshot is. Points are not marked, since queries read
    the chain. Nothing is deleted, and a later resume may restore parts. The run's progress is set
    back to the position from which the attempt starts.
    """
    history = (await load_histories(session, [run_id]))[run_id]
    for snapshot in await snapshot_rows.list_for_run(session, run_id):
        superseded = not fence_chain.is_in_history(
            history, snapshot.fence, Position(snapshot.env_step, snapshot.update)
        )
        if superseded != snapshot.superseded:
            snapshot_rows.set_superseded(snapshot, superseded=superseded)
            for evaluation in await snapshot_rows.list_snapshot_evaluations(session, snapshot.id):
                snapshot_rows.set_superseded(evaluation, superseded=superseded)
    for evaluation in await snapshot_rows.list_training_evaluations(session, run_id):
        superseded = not fence_chain.is_in_history(
            history, evaluation.fence, Position(evaluation.env_step, evaluation.update)
        )
        snapshot_rows.set_superseded(evaluation, superseded=superseded)
    await _rewind(session, run_id, history)


async def _rewind(session: Session, run_id: str, history: Chain) -> None:
    """Sets the progress to that of the snapshot that the newest attempt resumed from, or to 0."""
    run = (await telemetry_rows.lock_runs(session, [run_id]))[run_id]
    started = await snapshot_rows.find_resume_source(session, run_id, max(history, default=0))
    position = (0, 0, 0) if started is None else (started.env_step, started.update, started.episode)
    experiment_rows.set_progress(run, *position)
