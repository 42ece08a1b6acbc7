"""The order of a pool's queue by priority classes, shares and usage; jobs are assigned to workers.

Revision: 0019
Revises: 0018
"""

import sqlalchemy as sa
from alembic import op

from migrations.types import instant

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_QUEUED = sa.text("state = 'queued'")


def upgrade() -> None:
    _create_tables()
    op.add_column(
        "workers", sa.Column("queue", sa.String(length=160), server_default="", nullable=False)
    )
    op.execute("UPDATE workers SET queue = 'palestra.pool.' || pool")
    op.add_column(
        "jobs",
        sa.Column("priority_class", sa.String(length=16), server_default="normal", nullable=False),
    )
    op.add_column("jobs", sa.Column("seed_index", sa.Integer(), server_default="0", nullable=False))
    op.add_column("jobs", sa.Column("assigned_worker_id", sa.String(length=64), nullable=True))
    op.add_column("jobs", sa.Column("assigned_until", instant(), nullable=True))
    op.add_column("jobs", sa.Column("charged_weight", sa.Float(precision=53), nullable=True))
    _order_seeds()
    for name, column, condition in (
        ("ix_jobs_assigned_worker_id", "assigned_worker_id", "assigned_worker_id IS NOT NULL"),
        ("ix_jobs_charged", "pool", "charged_weight IS NOT NULL"),
    ):
        where = sa.text(condition)
        op.create_index(name, "jobs", [column], sqlite_where=where, postgresql_where=where)
    op.create_index(
        "ix_jobs_start_order",
        "jobs",
        [
            "pool",
            "priority_class",
            "project_id",
            "created_by",
            sa.text("priority DESC"),
            "seed_index",
            "queued_at",
            "id",
        ],
        sqlite_where=_QUEUED,
        postgresql_where=_QUEUED,
    )
    op.execute(
        "INSERT INTO queue_groups (pool, priority_class, project_id, user_id, "
        "waiting_since, queued_at) "
        "SELECT pool, 'normal', project_id, created_by, min(queued_at), max(queued_at) FROM jobs "
        "WHERE state = 'queued' GROUP BY pool, project_id, created_by"
    )
    op.drop_column("jobs", "rung_at")
    op.drop_column("jobs", "rings")


def _create_tables() -> None:
    op.create_table(
        "queue_groups",
        sa.Column("pool", sa.String(length=64), nullable=False),
        sa.Column("priority_class", sa.String(length=16), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.String(length=64), nullable=False),
        sa.Column("waiting_since", instant(), nullable=False),
        sa.Column("queued_at", instant(), nullable=False),
        sa.PrimaryKeyConstraint(
            "pool", "priority_class", "project_id", "user_id", name="pk_queue_groups"
        ),
    )
    op.create_table(
        "usage_accounts",
        sa.Column("pool", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.String(length=64), nullable=False),
        sa.Column("weighted_seconds", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("pool", "project_id", "user_id", name="pk_usage_accounts"),
    )
    op.create_table(
        "usage_entries",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("pool", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.String(length=64), nullable=False),
        sa.Column("experiment_id", sa.String(length=64), nullable=False),
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("attempt_id", sa.String(length=64), nullable=False),
        sa.Column("worker_id", sa.String(length=64), nullable=False),
        sa.Column("schedule", sa.String(length=32), nullable=False),
        sa.Column("priority_class", sa.String(length=16), nullable=False),
        sa.Column("environment", sa.String(length=128), nullable=True),
        sa.Column("devices", sa.Integer(), nullable=False),
        sa.Column("is_gpu", sa.Boolean(), nullable=False),
        sa.Column("started_at", instant(), nullable=False),
        sa.Column("ended_at", instant(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_usage_entries"),
        sa.UniqueConstraint("attempt_id", "kind", name="uq_usage_entries_attempt_id_kind"),
    )
    op.create_index("ix_usage_entries_pool_ended_at", "usage_entries", ["pool", "ended_at"])
    op.create_index(
        "ix_usage_entries_project_id_ended_at", "usage_entries", ["project_id", "ended_at"]
    )
    op.create_index("ix_usage_entries_user_id_ended_at", "usage_entries", ["user_id", "ended_at"])


def _order_seeds() -> None:
    """Numbers the runs of each experiment that has queued jobs."""
    op.execute(
        "UPDATE jobs SET seed_index = ("
        "SELECT count(*) FROM runs AS mine JOIN runs AS earlier "
        "ON earlier.project_id = mine.project_id AND earlier.experiment_id = mine.experiment_id "
        "AND (earlier.created_at < mine.created_at "
        "OR (earlier.created_at = mine.created_at AND earlier.id < mine.id)) "
        "WHERE mine.id = (SELECT run_id FROM job_runs "
        "WHERE job_runs.job_id = jobs.id AND job_runs.position = 0)) "
        "WHERE state = 'queued' AND schedule IN ('train', 'train_and_evaluate')"
    )


def downgrade() -> None:
    op.add_column("jobs", sa.Column("rung_at", instant(), nullable=True))
    op.add_column("jobs", sa.Column("rings", sa.Integer(), server_default="0", nullable=False))
    with op.batch_alter_table("jobs") as table:
        table.alter_column("rings", existing_type=sa.Integer(), server_default=None)
    op.drop_index("ix_jobs_start_order", table_name="jobs")
    op.drop_index("ix_jobs_charged", table_name="jobs")
    op.drop_index("ix_jobs_assigned_worker_id", table_name="jobs")
    for name in (
        "charged_weight",
        "assigned_until",
        "assigned_worker_id",
        "seed_index",
        "priority_class",
    ):
        op.drop_column("jobs", name)
    op.drop_column("workers", "queue")
    op.drop_table("usage_entries")
    op.drop_table("usage_accounts")
    op.drop_table("queue_groups")
