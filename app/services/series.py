"""Curves: what a run recorded, on one common grid, with the part that later attempts superseded left out."""

from app.db.engine import Session
from app.db.repositories import snapshots as snapshot_rows
from app.metrics import chain
from app.metrics.chain import Chain, Link, Position


async def histories(session: Session, run_ids: list[str]) -> dict[str, Chain]:
    """Returns the fence chain of each run; an empty one where no training attempt was made."""
    links: dict[str, list[Link]] = {run_id: [] for run_id in run_ids}
    for run_id, fence, resumed, env_step, update in await snapshot_rows.links(session, run_ids):
        at = None if resumed is None or env_step is None or update is None else Position(env_step, update)
        links[run_id].append(Link(fence, resumed, at))
    return {run_id: chain.chain(of_run) for run_id, of_run in links.items()}


async def supersede(session: Session, run_id: str) -> None:
    """Marks what no longer belongs to the run's history. Called by every claim that raises the run's fence, after its row is written.

    Snapshots and evaluations made during training are judged by the fence chain; an evaluation of a snapshot is superseded exactly when
    its snapshot is. Points need no mark: queries read the chain. Nothing is deleted, and a later resume may bring parts back.
    """
    await session.flush()
    history = (await histories(session, [run_id]))[run_id]
    for snapshot in await snapshot_rows.of_run(session, run_id):
        superseded = not chain.counts(history, snapshot.fence, Position(snapshot.env_step, snapshot.update))
        if superseded != snapshot.superseded:
            snapshot.superseded = superseded
            for evaluation in await snapshot_rows.snapshot_evaluations(session, snapshot.id):
                evaluation.superseded = superseded
    for evaluation in await snapshot_rows.training_evaluations(session, run_id):
        evaluation.superseded = not chain.counts(history, evaluation.fence, Position(evaluation.env_step, evaluation.update))
