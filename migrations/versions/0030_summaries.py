"""Summaries of the series of runs, thresholds, and members of definitions, for lists.

The server summarises the existing runs after the upgrade, one after another.

Revision: 0030
Revises: 0029
"""

import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

from migrations.types import big_key, document

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

_AT_ONCE = 200


def upgrade() -> None:
    _create_summaries()
    _create_thresholds()
    _create_members()
    op.execute(
        "INSERT INTO run_summaries (run_id, fence, version, places) "
        "SELECT id, -1, 0, '{}' FROM runs"
    )
    op.execute(
        "INSERT INTO summary_progress (id, event_id) SELECT 1, COALESCE(MAX(id), 0) FROM events"
    )
    _fill_members()
    op.create_index("ix_definition_members_path_text", "definition_members", ["path", "text"])
    op.create_index(
        "ix_runs_filters",
        "runs",
        ["project_id", "state", "experiment_id", "seed", "created_by", "created_at", "id"],
    )
    for name, column in (("latest", ["env_step", "update_count", "id"]), ("best", ["score"])):
        op.create_index(
            f"ix_evaluations_{name}",
            "evaluations",
            ["run_id", *column],
            sqlite_where=sa.text("superseded = 0 AND source = 'evaluation'"),
            postgresql_where=sa.text("NOT superseded AND source = 'evaluation'"),
        )


def _create_summaries() -> None:
    op.create_table(
        "series_names",
        sa.Column("id", big_key(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=160), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_series_names"),
        sa.UniqueConstraint("name", name="uq_series_names_name"),
    )
    op.create_table(
        "setups",
        sa.Column("id", big_key(), autoincrement=True, nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("agent", sa.String(length=64), nullable=False),
        sa.Column("env", sa.String(length=128), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_setups_project_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_setups"),
        sa.UniqueConstraint("project_id", "agent", "env", name="uq_setups_project_id_agent_env"),
    )
    op.create_table(
        "run_summaries",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("places", document(), nullable=False),
        sa.Column("first_wall", sa.Float(53), nullable=True),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name="fk_run_summaries_run_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", name="pk_run_summaries"),
    )
    op.create_index("ix_run_summaries_fence_run_id", "run_summaries", ["fence", "run_id"])
    op.create_table(
        "series_summaries",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("name_id", sa.BigInteger(), nullable=False),
        sa.Column("setup_id", sa.BigInteger(), nullable=False),
        sa.Column("points", sa.BigInteger(), nullable=False),
        sa.Column("nonfinite", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.Float(53), nullable=True),
        sa.Column("best", sa.Float(53), nullable=True),
        sa.Column("best_env_step", sa.BigInteger(), nullable=True),
        sa.Column("mean10", sa.Float(53), nullable=True),
        sa.Column("recent", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name="fk_series_summaries_run_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "name_id", name="pk_series_summaries"),
    )
    for statistic in ("best", "last", "mean10"):
        columns = ["name_id", "setup_id", statistic, "run_id"]
        op.create_index(f"ix_series_summaries_{statistic}", "series_summaries", columns)
    op.create_table(
        "summary_progress",
        sa.Column("id", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("event_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_summary_progress"),
    )


def _create_thresholds() -> None:
    op.create_table(
        "thresholds",
        sa.Column("id", big_key(), autoincrement=True, nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("series", sa.String(length=160), nullable=False),
        sa.Column("value", sa.Float(53), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_thresholds_project_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_thresholds"),
        sa.UniqueConstraint("project_id", "name", name="uq_thresholds_project_id_name"),
    )
    op.create_table(
        "threshold_crossings",
        sa.Column("threshold_id", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("env_step", sa.BigInteger(), nullable=False),
        sa.Column("wall", sa.Float(53), nullable=False),
        *(
            sa.ForeignKeyConstraint(
                [column], [target], name=f"fk_threshold_crossings_{column}", ondelete="CASCADE"
            )
            for column, target in (("threshold_id", "thresholds.id"), ("run_id", "runs.id"))
        ),
        sa.PrimaryKeyConstraint("threshold_id", "run_id", name="pk_threshold_crossings"),
    )
    op.create_index("ix_threshold_crossings_run_id", "threshold_crossings", ["run_id"])


def _create_members() -> None:
    op.create_table(
        "definition_members",
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("experiment_id", sa.String(length=64), nullable=False),
        sa.Column("path", sa.String(length=128), nullable=False),
        sa.Column("text", sa.String(length=256), nullable=False),
        sa.Column("number", sa.Float(53), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id", "experiment_id"],
            ["experiments.project_id", "experiments.id"],
            name="fk_definition_members_project_id_experiment_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "project_id", "experiment_id", "path", name="pk_definition_members"
        ),
        sqlite_with_rowid=False,
    )


def _fill_members() -> None:
    connection = op.get_bind()
    table = sa.table(
        "definition_members",
        *map(sa.column, ("project_id", "experiment_id", "path", "text", "number")),
    )
    after = ("", "")
    read = sa.text(
        "SELECT project_id, id, definition FROM experiments WHERE project_id > :project "
        "OR (project_id = :project AND id > :id) ORDER BY project_id, id LIMIT :most"
    )
    while rows := connection.execute(
        read, {"project": after[0], "id": after[1], "most": _AT_ONCE}
    ).all():
        after = rows[-1][0], rows[-1][1]
        members = [
            {"project_id": project, "experiment_id": experiment, **member}
            for project, experiment, text in rows
            for member in _list_members(json.loads(text), "")
        ]
        if members:
            connection.execute(sa.insert(table), members)


def _list_members(document: Any, prefix: str) -> Iterator[dict[str, Any]]:
    """Yields the members as `app.domain.definition_members` does."""
    for name, value in document.items():
        path = f"{prefix}{name}"
        if len(path) > 128:
            continue
        if isinstance(value, dict) and value:
            yield from _list_members(value, f"{path}.")
            continue
        text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        yield {
            "path": path,
            "text": text[:256],
            "number": float(value) if is_number and abs(value) < 1e300 else None,
        }


def downgrade() -> None:
    op.drop_index("ix_evaluations_best", "evaluations")
    op.drop_index("ix_evaluations_latest", "evaluations")
    op.drop_index("ix_runs_filters", "runs")
    for table in (
        "definition_members",
        "threshold_crossings",
        "thresholds",
        "summary_progress",
        "series_summaries",
        "run_summaries",
        "setups",
        "series_names",
    ):
        op.drop_table(table)
