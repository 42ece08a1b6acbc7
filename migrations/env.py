"""Alembic's environment: runs on the connection that `app.db.migrate` opened."""

from typing import Any, Literal

from alembic import context
from alembic.autogenerate.api import AutogenContext
from sqlalchemy import JSON, BigInteger

from app.db.clock import Timestamp
from app.db.models import Base


def _render(kind: str, item: Any, _context: AutogenContext) -> str | Literal[False]:
    if kind != "type":
        return False
    if isinstance(item, Timestamp):
        return "instant()"
    if isinstance(item, JSON):
        return "document()"
    if isinstance(item, BigInteger) and item._variant_mapping:  # noqa: SLF001 - Alembic reads it
        return "big_key()"
    return False


def _report_step(*, step: Any, **_: Any) -> None:
    report = context.config.attributes.get("progress")
    if report is not None and step.is_upgrade:
        report(f"step {step.up_revision_id} is applied: {step.up_revision.doc}")


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    transactional_ddl=True,
    transaction_per_migration=True,
    render_item=_render,
    on_version_apply=_report_step,
)
with context.begin_transaction():
    context.run_migrations()
