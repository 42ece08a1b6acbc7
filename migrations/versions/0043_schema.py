"""All tables.

Revision: 0043
Revises: nothing

Databases that the steps 0001 to 0043 made before have the same schema and the same revision.
"""

# ruff: noqa: PLR0915 - one statement per table
import sqlalchemy as sa
from alembic import op

from migrations.types import big_key, document, instant

revision = "0043"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", big_key(), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=True),
        sa.Column("actor", sa.String(length=96), nullable=False),
        sa.Column("user_id", sa.String(length=64), nullable=True),
        sa.Column("credential", sa.String(length=64), nullable=True),
        sa.Column("address", sa.String(length=64), nullable=True),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("object_type", sa.String(length=32), nullable=False),
        sa.Column("object_id", sa.String(length=200), nullable=False),
        sa.Column("outcome", sa.String(length=16), nullable=False),
        sa.Column("code", sa.String(length=64), nullable=True),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("at", instant(), nullable=False),
        sa.Column("previous_hash", sa.String(length=64), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_index(op.f("ix_audit_at"), "audit", ["at"], unique=False)
    op.create_index(
        op.f("ix_audit_object_type_object_id_id"),
        "audit",
        ["object_type", "object_id", "id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_audit_outcome_id"),
        "audit",
        ["outcome", "id"],
        unique=False,
        sqlite_where=sa.text("outcome = 'refused'"),
        postgresql_where=sa.text("outcome = 'refused'"),
    )
    op.create_index(op.f("ix_audit_project_id_id"), "audit", ["project_id", "id"], unique=False)
    op.create_index(
        op.f("ix_audit_user_id_id"),
        "audit",
        ["user_id", "id"],
        unique=False,
        sqlite_where=sa.text("user_id IS NOT NULL"),
        postgresql_where=sa.text("user_id IS NOT NULL"),
    )
    op.create_table(
        "audit_chain",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("last_id", sa.BigInteger(), nullable=False),
        sa.Column("last_hash", sa.String(length=64), nullable=False),
        sa.Column("checkpoint_id", sa.BigInteger(), nullable=False),
        sa.Column("checkpoint_hash", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_chain")),
    )
    op.create_table(
        "dispatcher_lease",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("holder", sa.String(length=160), nullable=False),
        sa.Column("taken_at", instant(), nullable=False),
        sa.Column("held_until", instant(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dispatcher_lease")),
    )
    op.create_table(
        "events",
        sa.Column("id", big_key(), autoincrement=True, nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=True),
        sa.Column("type", sa.String(length=16), nullable=False),
        sa.Column("experiment_id", sa.String(length=64), nullable=True),
        sa.Column("run_id", sa.String(length=64), nullable=True),
        sa.Column("job_id", sa.String(length=64), nullable=True),
        sa.Column("data", document(), nullable=False),
        sa.Column("at", instant(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_events_project_id_id"), "events", ["project_id", "id"], unique=False)
    op.create_table(
        "idempotency_keys",
        sa.Column("user_id", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("request_hash", sa.String(length=64), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("location", sa.String(length=512), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "key", name=op.f("pk_idempotency_keys")),
    )
    op.create_table(
        "invitations",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("code_hash", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=True),
        sa.Column("display_name", sa.String(length=64), server_default="", nullable=False),
        sa.Column("email", sa.String(length=254), nullable=True),
        sa.Column("is_admin", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("memberships", document(), nullable=False),
        sa.Column("created_by", sa.String(length=64), nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.Column("expires_at", instant(), nullable=False),
        sa.Column("redeemed_at", instant(), nullable=True),
        sa.Column("redeemed_by", sa.String(length=64), nullable=True),
        sa.Column("revoked_at", instant(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitations")),
        sa.UniqueConstraint("code_hash", name=op.f("uq_invitations_code_hash")),
    )
    op.create_index(
        op.f("ix_invitations_created_at_id"), "invitations", ["created_at", "id"], unique=False
    )
    op.create_table(
        "pool_hours",
        sa.Column("pool", sa.String(length=64), nullable=False),
        sa.Column("hour", instant(), nullable=False),
        sa.Column("sampled_at", instant(), nullable=True),
        sa.Column("recorded_seconds", sa.Float(precision=53), server_default="0", nullable=False),
        sa.Column("slot_seconds", sa.Float(precision=53), server_default="0", nullable=False),
        sa.Column("busy_seconds", sa.Float(precision=53), server_default="0", nullable=False),
        sa.Column(
            "idle_waiting_seconds", sa.Float(precision=53), server_default="0", nullable=False
        ),
        sa.PrimaryKeyConstraint("pool", "hour", name=op.f("pk_pool_hours")),
    )
    op.create_table(
        "pools",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("description", sa.Text(), server_default="", nullable=False),
        sa.Column("paused_at", instant(), nullable=True),
        sa.Column("pause_reason", sa.Text(), server_default="", nullable=False),
        sa.Column("default_wall_seconds", sa.Integer(), nullable=True),
        sa.Column("max_wall_seconds", sa.Integer(), nullable=True),
        sa.Column("shows_names", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pools")),
        sa.UniqueConstraint("name", name=op.f("uq_pools_name")),
    )
    op.create_table(
        "projects",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("slug", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("description", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.Column("archived_at", instant(), nullable=True),
        sa.Column("deleted_at", instant(), nullable=True),
        sa.Column("deleted_by", sa.String(length=64), nullable=True),
        sa.Column("restorable_until", instant(), nullable=True),
        sa.Column("removal_started_at", instant(), nullable=True),
        sa.Column("storage_used", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("storage_limit", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_projects")),
        sa.UniqueConstraint("name", name=op.f("uq_projects_name")),
        sa.UniqueConstraint("slug", name=op.f("uq_projects_slug")),
    )
    op.create_table(
        "queue_groups",
        sa.Column("pool", sa.String(length=64), nullable=False),
        sa.Column("priority_class", sa.String(length=16), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.String(length=64), nullable=False),
        sa.Column("waiting_since", instant(), nullable=False),
        sa.Column("queued_at", instant(), nullable=False),
        sa.PrimaryKeyConstraint(
            "pool", "priority_class", "project_id", "user_id", name=op.f("pk_queue_groups")
        ),
    )
    op.create_table(
        "series_names",
        sa.Column("id", big_key(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=160), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_series_names")),
        sa.UniqueConstraint("name", name=op.f("uq_series_names_name")),
    )
    op.create_table(
        "server_uptime",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("seconds", sa.Float(precision=53), nullable=False),
        sa.Column("counted_at", instant(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_server_uptime")),
    )
    op.create_table(
        "start_estimates",
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("pool", sa.String(length=64), nullable=False),
        sa.Column("made_at", instant(), nullable=False),
        sa.Column("earliest", instant(), nullable=True),
        sa.Column("median", instant(), nullable=True),
        sa.Column("latest", instant(), nullable=True),
        sa.Column("unknown", sa.Text(), nullable=True),
        sa.Column("first_made_at", instant(), nullable=True),
        sa.Column("first_earliest", instant(), nullable=True),
        sa.Column("first_median", instant(), nullable=True),
        sa.Column("first_latest", instant(), nullable=True),
        sa.Column("started_at", instant(), nullable=True),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_start_estimates")),
    )
    op.create_index(
        "ix_start_estimates_open",
        "start_estimates",
        ["pool"],
        unique=False,
        sqlite_where=sa.text("started_at IS NULL"),
        postgresql_where=sa.text("started_at IS NULL"),
    )
    op.create_index(
        op.f("ix_start_estimates_pool_started_at"),
        "start_estimates",
        ["pool", "started_at"],
        unique=False,
    )
    op.create_table(
        "summary_progress",
        sa.Column("id", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("event_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_summary_progress")),
    )
    op.create_table(
        "usage_accounts",
        sa.Column("pool", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.String(length=64), nullable=False),
        sa.Column("weighted_seconds", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("pool", "project_id", "user_id", name=op.f("pk_usage_accounts")),
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
        sa.PrimaryKeyConstraint("id", name=op.f("pk_usage_entries")),
        sa.UniqueConstraint("attempt_id", "kind", name=op.f("uq_usage_entries_attempt_id_kind")),
    )
    op.create_index(op.f("ix_usage_entries_ended_at"), "usage_entries", ["ended_at"], unique=False)
    op.create_index(op.f("ix_usage_entries_job_id"), "usage_entries", ["job_id"], unique=False)
    op.create_index(
        op.f("ix_usage_entries_pool_ended_at"), "usage_entries", ["pool", "ended_at"], unique=False
    )
    op.create_index(
        op.f("ix_usage_entries_project_id_ended_at"),
        "usage_entries",
        ["project_id", "ended_at"],
        unique=False,
    )
    op.create_index(
        op.f("ix_usage_entries_user_id_ended_at"),
        "usage_entries",
        ["user_id", "ended_at"],
        unique=False,
    )
    op.create_table(
        "users",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("display_name", sa.String(length=64), server_default="", nullable=False),
        sa.Column("email", sa.String(length=254), nullable=True),
        sa.Column("is_admin", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("service_project_id", sa.String(length=64), nullable=True),
        sa.Column("made_by", sa.String(length=64), nullable=True),
        sa.Column("password_hash", sa.String(length=256), nullable=True),
        sa.Column("created_at", instant(), nullable=False),
        sa.Column("disabled_at", instant(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("name", name=op.f("uq_users_name")),
    )
    op.create_index(
        op.f("ix_users_service_project_id"), "users", ["service_project_id"], unique=False
    )
    op.create_table(
        "workers",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("former_name", sa.String(length=64), nullable=True),
        sa.Column("pool", sa.String(length=64), nullable=False),
        sa.Column("queue", sa.String(length=160), server_default="", nullable=False),
        sa.Column("broker_password_hash", sa.String(length=64), nullable=True),
        sa.Column("host", sa.String(length=64), nullable=False),
        sa.Column("boot_id", sa.String(length=64), nullable=False),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("takes_several_slots", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("gpus", document(), nullable=False),
        sa.Column("gpu_count", sa.Integer(), nullable=False),
        sa.Column("work_order_versions", document(), nullable=False),
        sa.Column("version", sa.String(length=64), nullable=False),
        sa.Column("hardware", document(), nullable=False),
        sa.Column("packages", document(), nullable=False),
        sa.Column("catalogue", document(), nullable=False),
        sa.Column("secret_hash", sa.String(length=64), nullable=True),
        sa.Column("secret_since", instant(), nullable=True),
        sa.Column("next_secret_hash", sa.String(length=64), nullable=True),
        sa.Column("rotation_nonce", sa.String(length=64), nullable=True),
        sa.Column("contract_version", sa.Integer(), server_default="1", nullable=False),
        sa.Column("silent_seconds", sa.Float(precision=53), nullable=False),
        sa.Column("draining", sa.Boolean(), nullable=False),
        sa.Column("failed_starts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("drain_reason", sa.Text(), nullable=True),
        sa.Column("created_by", sa.String(length=64), nullable=True),
        sa.Column("registered_at", instant(), nullable=False),
        sa.Column("replaced_at", instant(), nullable=True),
        sa.Column("last_heartbeat_at", instant(), nullable=False),
        sa.Column("clock_skew_seconds", sa.Float(precision=53), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workers")),
    )
    op.create_index(
        op.f("ix_workers_name"),
        "workers",
        ["name"],
        unique=True,
        postgresql_where=sa.text("replaced_at IS NULL"),
        sqlite_where=sa.text("replaced_at IS NULL"),
    )
    op.create_index(
        op.f("ix_workers_next_secret_hash"), "workers", ["next_secret_hash"], unique=True
    )
    op.create_index(op.f("ix_workers_pool"), "workers", ["pool"], unique=False)
    op.create_index(op.f("ix_workers_secret_hash"), "workers", ["secret_hash"], unique=True)
    op.create_table(
        "blobs",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_blobs_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_blobs")),
        sa.UniqueConstraint(
            "project_id", "sha256", "size", name=op.f("uq_blobs_project_id_sha256_size")
        ),
    )
    op.create_table(
        "enrolment_tokens",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("pool_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("created_by", sa.String(length=64), nullable=True),
        sa.Column("created_at", instant(), nullable=False),
        sa.Column("expires_at", instant(), nullable=True),
        sa.Column("last_used_at", instant(), nullable=True),
        sa.Column("revoked_at", instant(), nullable=True),
        sa.ForeignKeyConstraint(
            ["pool_id"], ["pools.id"], name=op.f("fk_enrolment_tokens_pool_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_enrolment_tokens")),
        sa.UniqueConstraint("secret_hash", name=op.f("uq_enrolment_tokens_secret_hash")),
    )
    op.create_index(
        op.f("ix_enrolment_tokens_pool_id_created_at_id"),
        "enrolment_tokens",
        ["pool_id", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "experiments",
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("identity_hash", sa.String(length=64), nullable=False),
        sa.Column("definition_hash", sa.String(length=64), nullable=False),
        sa.Column("schema_version", sa.Integer(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("code", document(), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("agent", sa.String(length=64), nullable=False),
        sa.Column("env", sa.String(length=128), nullable=False),
        sa.Column("created_by", sa.String(length=64), nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.Column("archived_at", instant(), nullable=True),
        sa.Column("max_running", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["created_by"], ["users.id"], name=op.f("fk_experiments_created_by")
        ),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_experiments_project_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("pk_experiments")),
        sa.UniqueConstraint(
            "project_id", "identity_hash", name=op.f("uq_experiments_project_id_identity_hash")
        ),
    )
    op.create_index(
        op.f("ix_experiments_created_by_created_at_id"),
        "experiments",
        ["created_by", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_experiments_definition_hash"), "experiments", ["definition_hash"], unique=False
    )
    op.create_index(op.f("ix_experiments_env_agent"), "experiments", ["env", "agent"], unique=False)
    op.create_index(
        op.f("ix_experiments_project_id_created_at_id"),
        "experiments",
        ["project_id", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_experiments_project_id_name_id"),
        "experiments",
        ["project_id", "name", "id"],
        unique=False,
    )
    op.create_table(
        "login_links",
        sa.Column("code_hash", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.String(length=64), nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.Column("expires_at", instant(), nullable=False),
        sa.Column("used_at", instant(), nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_login_links_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("code_hash", name=op.f("pk_login_links")),
    )
    op.create_table(
        "login_sessions",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.String(length=64), nullable=False),
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.Column("last_used_at", instant(), nullable=False),
        sa.Column("last_used_address", sa.String(length=64), nullable=True),
        sa.Column("browser", sa.String(length=64), nullable=True),
        sa.Column("opened_by", sa.String(length=16), nullable=True),
        sa.Column("ended_at", instant(), nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_login_sessions_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_login_sessions")),
        sa.UniqueConstraint("secret_hash", name=op.f("uq_login_sessions_secret_hash")),
    )
    op.create_index(
        op.f("ix_login_sessions_user_id_ended_at"),
        "login_sessions",
        ["user_id", "ended_at"],
        unique=False,
    )
    op.create_table(
        "memberships",
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_memberships_project_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_memberships_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("project_id", "user_id", name=op.f("pk_memberships")),
    )
    op.create_index(op.f("ix_memberships_user_id"), "memberships", ["user_id"], unique=False)
    op.create_table(
        "pool_windows",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("pool_id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("starts_at", instant(), nullable=False),
        sa.Column("ends_at", instant(), nullable=False),
        sa.Column("workers", document(), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=True),
        sa.Column("user_id", sa.String(length=64), nullable=True),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("created_by", sa.String(length=64), nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["pool_id"], ["pools.id"], name=op.f("fk_pool_windows_pool_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_pool_windows_project_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_pool_windows_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pool_windows")),
    )
    op.create_index(
        op.f("ix_pool_windows_pool_id_ends_at"),
        "pool_windows",
        ["pool_id", "ends_at"],
        unique=False,
    )
    op.create_table(
        "project_pools",
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("pool_id", sa.String(length=64), nullable=False),
        sa.Column("share", sa.Float(precision=53), server_default="1", nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["pool_id"], ["pools.id"], name=op.f("fk_project_pools_pool_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_project_pools_project_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("project_id", "pool_id", name=op.f("pk_project_pools")),
    )
    op.create_index(op.f("ix_project_pools_pool_id"), "project_pools", ["pool_id"], unique=False)
    op.create_table(
        "quotas",
        sa.Column("pool_id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("subject", sa.String(length=64), nullable=False),
        sa.Column("queued", sa.Integer(), nullable=True),
        sa.Column("running", sa.Integer(), nullable=True),
        sa.Column("device_hours", sa.Float(precision=53), nullable=True),
        sa.ForeignKeyConstraint(
            ["pool_id"], ["pools.id"], name=op.f("fk_quotas_pool_id_pools"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_quotas_project_id_projects"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("pool_id", "project_id", "subject", name=op.f("pk_quotas")),
    )
    op.create_table(
        "setups",
        sa.Column("id", big_key(), autoincrement=True, nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("agent", sa.String(length=64), nullable=False),
        sa.Column("env", sa.String(length=128), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_setups_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_setups")),
        sa.UniqueConstraint(
            "project_id", "agent", "env", name=op.f("uq_setups_project_id_agent_env")
        ),
    )
    op.create_table(
        "thresholds",
        sa.Column("id", big_key(), autoincrement=True, nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("series", sa.String(length=160), nullable=False),
        sa.Column("value", sa.Float(precision=53), nullable=False),
        sa.Column("is_at_least", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_thresholds_project_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_thresholds")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_thresholds_project_id_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=True),
        sa.Column("user_id", sa.String(length=64), nullable=False),
        sa.Column("parent_id", sa.String(length=64), nullable=True),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("previous_hash", sa.String(length=64), nullable=True),
        sa.Column("previous_until", instant(), nullable=True),
        sa.Column("scopes", document(), nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.Column("expires_at", instant(), nullable=True),
        sa.Column("last_used_at", instant(), nullable=True),
        sa.Column("last_used_address", sa.String(length=64), nullable=True),
        sa.Column("revoked_at", instant(), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_tokens_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_tokens_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("secret_hash", name=op.f("uq_tokens_secret_hash")),
    )
    op.create_index(op.f("ix_tokens_parent_id"), "tokens", ["parent_id"], unique=False)
    op.create_index(op.f("ix_tokens_previous_hash"), "tokens", ["previous_hash"], unique=False)
    op.create_index(
        op.f("ix_tokens_project_id_created_at_id"),
        "tokens",
        ["project_id", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_tokens_user_id_created_at_id"),
        "tokens",
        ["user_id", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "views",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("owner_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("visibility", sa.String(length=16), nullable=False),
        sa.Column("state", document(), nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.Column("updated_at", instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["users.id"], name=op.f("fk_views_owner_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_views_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_views")),
        sa.UniqueConstraint(
            "project_id", "owner_id", "name", name=op.f("uq_views_project_id_owner_id_name")
        ),
    )
    op.create_index(op.f("ix_views_owner_id"), "views", ["owner_id"], unique=False)
    op.create_table(
        "definition_members",
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("experiment_id", sa.String(length=64), nullable=False),
        sa.Column("path", sa.String(length=128), nullable=False),
        sa.Column("text", sa.String(length=256), nullable=False),
        sa.Column("number", sa.Float(precision=53), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id", "experiment_id"],
            ["experiments.project_id", "experiments.id"],
            name=op.f("fk_definition_members_project_id_experiment_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "project_id", "experiment_id", "path", name=op.f("pk_definition_members")
        ),
        sqlite_with_rowid=False,
    )
    op.create_index(
        op.f("ix_definition_members_path_number"),
        "definition_members",
        ["path", "number"],
        unique=False,
    )
    op.create_index(
        op.f("ix_definition_members_path_text"),
        "definition_members",
        ["path", "text"],
        unique=False,
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("experiment_id", sa.String(length=64), nullable=False),
        sa.Column("schedule", sa.String(length=32), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("cause", sa.String(length=32), nullable=True),
        sa.Column("failure", document(), nullable=True),
        sa.Column("pool", sa.String(length=64), nullable=False),
        sa.Column("priority_class", sa.String(length=16), server_default="normal", nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("own_place", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("seed_index", sa.Integer(), server_default="0", nullable=False),
        sa.Column("gpus", sa.Integer(), nullable=False),
        sa.Column("resources", document(), nullable=False),
        sa.Column("limits", document(), nullable=False),
        sa.Column("evaluate", document(), nullable=True),
        sa.Column("work_order_version", sa.Integer(), nullable=False),
        sa.Column("afresh", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("allow_code_change", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("infrastructure_failures", sa.Integer(), nullable=False),
        sa.Column("failed_starts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("counted_failures", sa.Integer(), nullable=False),
        sa.Column("quick_deaths", sa.Integer(), nullable=False),
        sa.Column("open_dependencies", sa.Integer(), server_default="0", nullable=False),
        sa.Column("not_before", instant(), nullable=True),
        sa.Column("assigned_worker_id", sa.String(length=64), nullable=True),
        sa.Column("assigned_until", instant(), nullable=True),
        sa.Column("assigned_slots", sa.Integer(), server_default="1", nullable=False),
        sa.Column("charged_weight", sa.Float(precision=53), nullable=True),
        sa.Column("created_by", sa.String(length=64), nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.Column("queued_at", instant(), nullable=False),
        sa.Column("started_at", instant(), nullable=True),
        sa.Column("finished_at", instant(), nullable=True),
        sa.ForeignKeyConstraint(["created_by"], ["users.id"], name=op.f("fk_jobs_created_by")),
        sa.ForeignKeyConstraint(
            ["project_id", "experiment_id"],
            ["experiments.project_id", "experiments.id"],
            name=op.f("fk_jobs_project_id_experiment_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
    )
    op.create_index(
        "ix_jobs_assigned_worker_id",
        "jobs",
        ["assigned_worker_id"],
        unique=False,
        sqlite_where=sa.text("assigned_worker_id IS NOT NULL"),
        postgresql_where=sa.text("assigned_worker_id IS NOT NULL"),
    )
    op.create_index(
        "ix_jobs_charged",
        "jobs",
        ["pool"],
        unique=False,
        sqlite_where=sa.text("charged_weight IS NOT NULL"),
        postgresql_where=sa.text("charged_weight IS NOT NULL"),
    )
    op.create_index(
        op.f("ix_jobs_created_by_created_at_id"),
        "jobs",
        ["created_by", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        "ix_jobs_finished",
        "jobs",
        ["experiment_id", "finished_at"],
        unique=False,
        sqlite_where=sa.text("finished_at IS NOT NULL"),
        postgresql_where=sa.text("finished_at IS NOT NULL"),
    )
    op.create_index(
        op.f("ix_jobs_project_id_created_at_id"),
        "jobs",
        ["project_id", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_jobs_project_id_experiment_id"),
        "jobs",
        ["project_id", "experiment_id"],
        unique=False,
    )
    op.create_index(
        "ix_jobs_start_order",
        "jobs",
        [
            "pool",
            "priority_class",
            "project_id",
            "created_by",
            sa.text("priority DESC"),
            "own_place",
            "seed_index",
            "queued_at",
            "id",
        ],
        sqlite_where=sa.text("state = 'queued' AND open_dependencies = 0"),
        postgresql_where=sa.text("state = 'queued' AND open_dependencies = 0"),
    )
    op.create_index(op.f("ix_jobs_state_pool"), "jobs", ["state", "pool"], unique=False)
    op.create_table(
        "submissions",
        sa.Column("id", big_key(), autoincrement=True, nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("experiment_id", sa.String(length=64), nullable=False),
        sa.Column("provenance", document(), nullable=False),
        sa.Column("created_by", sa.String(length=64), nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["created_by"], ["users.id"], name=op.f("fk_submissions_created_by")
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "experiment_id"],
            ["experiments.project_id", "experiments.id"],
            name=op.f("fk_submissions_project_id_experiment_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_submissions")),
    )
    op.create_index(
        op.f("ix_submissions_project_id_experiment_id"),
        "submissions",
        ["project_id", "experiment_id"],
        unique=False,
    )
    op.create_table(
        "attempts",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.String(length=64), nullable=False),
        sa.Column("slot", sa.Integer(), nullable=False),
        sa.Column("further_slots", document(), nullable=True),
        sa.Column("slot_count", sa.Integer(), server_default="1", nullable=False),
        sa.Column("boot_id", sa.String(length=64), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("outcome", sa.String(length=16), nullable=True),
        sa.Column("cause", sa.String(length=32), nullable=True),
        sa.Column("failure", document(), nullable=True),
        sa.Column("resume_quality", sa.String(length=16), nullable=True),
        sa.Column("provenance", document(), nullable=True),
        sa.Column("ran_with", document(), nullable=False),
        sa.Column("lease_until", instant(), nullable=False),
        sa.Column("acked_seq", sa.BigInteger(), nullable=False),
        sa.Column("spooled_seq", sa.BigInteger(), nullable=False),
        sa.Column("env_step", sa.BigInteger(), nullable=False),
        sa.Column("update_count", sa.BigInteger(), nullable=False),
        sa.Column("trainer_pid", sa.BigInteger(), nullable=True),
        sa.Column("phase", sa.String(length=16), nullable=True),
        sa.Column("compile", sa.String(length=16), nullable=True),
        sa.Column("backlog", document(), nullable=True),
        sa.Column("gives_up", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("started_at", instant(), nullable=False),
        sa.Column("renewed_at", instant(), nullable=False),
        sa.Column("ended_at", instant(), nullable=True),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_attempts_job_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_attempts_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["worker_id"], ["workers.id"], name=op.f("fk_attempts_worker_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempts")),
        sa.UniqueConstraint("job_id", "number", name=op.f("uq_attempts_job_id_number")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_attempts_token_hash")),
    )
    op.create_index(op.f("ix_attempts_project_id"), "attempts", ["project_id"], unique=False)
    op.create_index(
        "uq_attempts_live_job",
        "attempts",
        ["job_id"],
        unique=True,
        sqlite_where=sa.text("state IN ('starting', 'running')"),
        postgresql_where=sa.text("state IN ('starting', 'running')"),
    )
    op.create_index(
        "uq_attempts_live_slot",
        "attempts",
        ["worker_id", "slot"],
        unique=True,
        sqlite_where=sa.text("state IN ('starting', 'running')"),
        postgresql_where=sa.text("state IN ('starting', 'running')"),
    )
    op.create_table(
        "job_dependencies",
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("after_id", sa.String(length=64), nullable=False),
        sa.Column("condition", sa.String(length=16), nullable=False),
        sa.Column("is_open", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["after_id"],
            ["jobs.id"],
            name=op.f("fk_job_dependencies_after_id_jobs"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["job_id"],
            ["jobs.id"],
            name=op.f("fk_job_dependencies_job_id_jobs"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("job_id", "after_id", name=op.f("pk_job_dependencies")),
    )
    op.create_index(
        op.f("ix_job_dependencies_after_id"), "job_dependencies", ["after_id"], unique=False
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("experiment_id", sa.String(length=64), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("replicate", sa.Integer(), nullable=False),
        sa.Column("submission_id", sa.BigInteger(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("cause", sa.String(length=32), nullable=True),
        sa.Column("failure", document(), nullable=True),
        sa.Column("job_id", sa.String(length=64), nullable=True),
        sa.Column("resume_quality", sa.String(length=16), nullable=True),
        sa.Column("env_step", sa.BigInteger(), nullable=False),
        sa.Column("update_count", sa.BigInteger(), nullable=False),
        sa.Column("episode", sa.BigInteger(), nullable=False),
        sa.Column("env_steps_per_second", sa.Float(precision=53), nullable=True),
        sa.Column("created_by", sa.String(length=64), nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.Column("started_at", instant(), nullable=True),
        sa.Column("finished_at", instant(), nullable=True),
        sa.ForeignKeyConstraint(["created_by"], ["users.id"], name=op.f("fk_runs_created_by")),
        sa.ForeignKeyConstraint(
            ["project_id", "experiment_id"],
            ["experiments.project_id", "experiments.id"],
            name=op.f("fk_runs_project_id_experiment_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submissions.id"], name=op.f("fk_runs_submission_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.UniqueConstraint(
            "project_id",
            "experiment_id",
            "seed",
            "replicate",
            name=op.f("uq_runs_project_id_experiment_id_seed_replicate"),
        ),
    )
    op.create_index(
        op.f("ix_runs_created_by_created_at_id"),
        "runs",
        ["created_by", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        "ix_runs_filters",
        "runs",
        ["project_id", "state", "experiment_id", "seed", "created_by", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_runs_project_id_created_at_id"),
        "runs",
        ["project_id", "created_at", "id"],
        unique=False,
    )
    op.create_index(op.f("ix_runs_submission_id"), "runs", ["submission_id"], unique=False)
    op.create_table(
        "artifacts",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("attempt_id", sa.String(length=64), nullable=False),
        sa.Column("folder", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=1024), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("env_step", sa.BigInteger(), nullable=True),
        sa.Column("blob_id", sa.String(length=64), nullable=True),
        sa.Column("created_at", instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"],
            ["attempts.id"],
            name=op.f("fk_artifacts_attempt_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["blob_id"], ["blobs.id"], name=op.f("fk_artifacts_blob_id")),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_artifacts_project_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_artifacts_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_artifacts")),
        sa.UniqueConstraint(
            "attempt_id",
            "run_id",
            "folder",
            "name",
            name=op.f("uq_artifacts_attempt_id_run_id_folder_name"),
        ),
    )
    op.create_index(op.f("ix_artifacts_blob_id"), "artifacts", ["blob_id"], unique=False)
    op.create_index(op.f("ix_artifacts_project_id"), "artifacts", ["project_id"], unique=False)
    op.create_index(
        op.f("ix_artifacts_run_id_created_at_id"),
        "artifacts",
        ["run_id", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "attempt_runs",
        sa.Column("attempt_id", sa.String(length=64), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("training", sa.Boolean(), nullable=False),
        sa.Column("live_training", sa.Boolean(), nullable=False),
        sa.Column("snapshot_id", sa.String(length=64), nullable=True),
        sa.ForeignKeyConstraint(
            ["attempt_id"],
            ["attempts.id"],
            name=op.f("fk_attempt_runs_attempt_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_attempt_runs_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("attempt_id", "run_id", name=op.f("pk_attempt_runs")),
    )
    op.create_index(
        op.f("ix_attempt_runs_run_id_fence"), "attempt_runs", ["run_id", "fence"], unique=False
    )
    op.create_index(
        "uq_attempt_runs_live_training",
        "attempt_runs",
        ["run_id"],
        unique=True,
        sqlite_where=sa.text("live_training"),
        postgresql_where=sa.text("live_training"),
    )
    op.create_table(
        "curve_tails",
        sa.Column("id", big_key(), autoincrement=True, nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("attempt_id", sa.String(length=64), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("first_seq", sa.BigInteger(), nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("points", sa.Integer(), nullable=False),
        sa.Column("received_at", instant(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_curve_tails_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_curve_tails")),
    )
    op.create_index(op.f("ix_curve_tails_run_id_id"), "curve_tails", ["run_id", "id"], unique=False)
    op.create_table(
        "epoch_blocks",
        sa.Column("id", big_key(), autoincrement=True, nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("attempt_id", sa.String(length=64), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("first_seq", sa.BigInteger(), nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("epochs", sa.Integer(), nullable=False),
        sa.Column("text_bytes", sa.Integer(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_epoch_blocks_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_epoch_blocks")),
    )
    op.create_index(
        "uq_epoch_blocks_order", "epoch_blocks", ["run_id", "fence", "first_seq"], unique=True
    )
    op.create_table(
        "epoch_stats",
        sa.Column("attempt_id", sa.String(length=64), nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"],
            ["attempts.id"],
            name=op.f("fk_epoch_stats_attempt_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_epoch_stats_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("attempt_id", "seq", name=op.f("pk_epoch_stats")),
    )
    op.create_index(
        op.f("ix_epoch_stats_run_id_fence_seq"),
        "epoch_stats",
        ["run_id", "fence", "seq"],
        unique=False,
    )
    op.create_table(
        "evaluations",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("experiment_id", sa.String(length=64), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("attempt_id", sa.String(length=64), nullable=False),
        sa.Column("snapshot_id", sa.String(length=64), nullable=True),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("env_step", sa.BigInteger(), nullable=False),
        sa.Column("update_count", sa.BigInteger(), nullable=False),
        sa.Column("score", sa.Float(precision=53), nullable=True),
        sa.Column("source", sa.String(length=16), server_default="evaluation", nullable=False),
        sa.Column("superseded", sa.Boolean(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"],
            ["attempts.id"],
            name=op.f("fk_evaluations_attempt_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_evaluations_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluations")),
        sa.UniqueConstraint("attempt_id", "seq", name=op.f("uq_evaluations_attempt_id_seq")),
    )
    op.create_index(
        "ix_evaluations_best",
        "evaluations",
        ["run_id", "score"],
        unique=False,
        sqlite_where=sa.text("superseded = 0 AND source = 'evaluation'"),
        postgresql_where=sa.text("NOT superseded AND source = 'evaluation'"),
    )
    op.create_index(
        op.f("ix_evaluations_job_id"),
        "evaluations",
        ["job_id"],
        unique=False,
        sqlite_where=sa.text("snapshot_id IS NOT NULL"),
        postgresql_where=sa.text("snapshot_id IS NOT NULL"),
    )
    op.create_index(
        "ix_evaluations_latest",
        "evaluations",
        ["run_id", "env_step", "update_count", "id"],
        unique=False,
        sqlite_where=sa.text("superseded = 0 AND source = 'evaluation'"),
        postgresql_where=sa.text("NOT superseded AND source = 'evaluation'"),
    )
    op.create_index(
        op.f("ix_evaluations_run_id_fence_seq"),
        "evaluations",
        ["run_id", "fence", "seq"],
        unique=False,
    )
    op.create_index(
        op.f("ix_evaluations_snapshot_id"),
        "evaluations",
        ["snapshot_id"],
        unique=False,
        sqlite_where=sa.text("snapshot_id IS NOT NULL"),
        postgresql_where=sa.text("snapshot_id IS NOT NULL"),
    )
    op.create_table(
        "job_runs",
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(length=16), nullable=True),
        sa.Column("cause", sa.String(length=32), nullable=True),
        sa.Column("failure", document(), nullable=True),
        sa.Column("ended_at", instant(), nullable=True),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_job_runs_job_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_job_runs_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", "run_id", name=op.f("pk_job_runs")),
    )
    op.create_index(op.f("ix_job_runs_run_id"), "job_runs", ["run_id"], unique=False)
    op.create_table(
        "log_blocks",
        sa.Column("id", big_key(), autoincrement=True, nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("attempt_id", sa.String(length=64), nullable=False),
        sa.Column("first_line", sa.BigInteger(), nullable=False),
        sa.Column("last_line", sa.BigInteger(), nullable=False),
        sa.Column("total_bytes", sa.BigInteger(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"],
            ["attempts.id"],
            name=op.f("fk_log_blocks_attempt_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_log_blocks_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_log_blocks")),
        sa.UniqueConstraint("run_id", "first_line", name=op.f("uq_log_blocks_run_id_first_line")),
    )
    op.create_index(op.f("ix_log_blocks_attempt_id"), "log_blocks", ["attempt_id"], unique=False)
    op.create_table(
        "open_log_lines",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("attempt_id", sa.String(length=64), nullable=False),
        sa.Column("stream", sa.String(length=16), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"],
            ["attempts.id"],
            name=op.f("fk_open_log_lines_attempt_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_open_log_lines_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "attempt_id", "stream", name=op.f("pk_open_log_lines")),
    )
    op.create_index(
        op.f("ix_open_log_lines_attempt_id"), "open_log_lines", ["attempt_id"], unique=False
    )
    op.create_table(
        "run_findings",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("rule", sa.String(length=64), nullable=False),
        sa.Column("place", sa.SmallInteger(), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.Column("remedy", sa.Text(), nullable=False),
        sa.Column("series", sa.String(length=160), nullable=False),
        sa.Column("env_step", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_run_findings_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "rule", name=op.f("pk_run_findings")),
    )
    op.create_table(
        "run_summaries",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("places", document(), nullable=False),
        sa.Column("first_wall", sa.Float(precision=53), nullable=True),
        sa.Column("judged_version", sa.BigInteger(), server_default="-1", nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_run_summaries_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_run_summaries")),
    )
    op.create_index(
        op.f("ix_run_summaries_fence_run_id"), "run_summaries", ["fence", "run_id"], unique=False
    )
    op.create_table(
        "series",
        sa.Column("id", big_key(), autoincrement=True, nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("points", sa.BigInteger(), nullable=False),
        sa.Column("nonfinite", sa.BigInteger(), nullable=False),
        sa.Column("last_env_step", sa.BigInteger(), nullable=False),
        sa.Column("last_value", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_series_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_series")),
        sa.UniqueConstraint("run_id", "name", name=op.f("uq_series_run_id_name")),
    )
    op.create_table(
        "series_summaries",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("name_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("setup_id", sa.BigInteger(), nullable=False),
        sa.Column("points", sa.BigInteger(), nullable=False),
        sa.Column("nonfinite", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.Float(precision=53), nullable=True),
        sa.Column("best", sa.Float(precision=53), nullable=True),
        sa.Column("best_env_step", sa.BigInteger(), nullable=True),
        sa.Column("mean10", sa.Float(precision=53), nullable=True),
        sa.Column("recent", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_series_summaries_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "name_id", name=op.f("pk_series_summaries")),
    )
    op.create_index(
        "ix_series_summaries_best",
        "series_summaries",
        ["name_id", "setup_id", "best", "run_id"],
        unique=False,
    )
    op.create_index(
        "ix_series_summaries_last",
        "series_summaries",
        ["name_id", "setup_id", "last", "run_id"],
        unique=False,
    )
    op.create_index(
        "ix_series_summaries_mean10",
        "series_summaries",
        ["name_id", "setup_id", "mean10", "run_id"],
        unique=False,
    )
    op.create_table(
        "snapshots",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("experiment_id", sa.String(length=64), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("attempt_id", sa.String(length=64), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.String(length=16), nullable=False),
        sa.Column("env_step", sa.BigInteger(), nullable=False),
        sa.Column("update_count", sa.BigInteger(), nullable=False),
        sa.Column("episode", sa.BigInteger(), nullable=False),
        sa.Column("format_version", sa.Integer(), nullable=False),
        sa.Column("resume_exact", sa.Boolean(), nullable=False),
        sa.Column("score", sa.Float(precision=53), nullable=True),
        sa.Column("score_text", sa.String(length=32), nullable=True),
        sa.Column("superseded", sa.Boolean(), nullable=False),
        sa.Column("pinned", sa.Boolean(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.Column("verified_at", instant(), nullable=True),
        sa.ForeignKeyConstraint(
            ["attempt_id"],
            ["attempts.id"],
            name=op.f("fk_snapshots_attempt_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_snapshots_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_snapshots")),
    )
    op.create_index(op.f("ix_snapshots_attempt_id"), "snapshots", ["attempt_id"], unique=False)
    op.create_index(
        op.f("ix_snapshots_run_id_fence_seq"), "snapshots", ["run_id", "fence", "seq"], unique=False
    )
    op.create_table(
        "telemetry_batches",
        sa.Column("attempt_id", sa.String(length=64), nullable=False),
        sa.Column("first_seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("digests", sa.LargeBinary(), nullable=False),
        sa.Column("received_at", instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"],
            ["attempts.id"],
            name=op.f("fk_telemetry_batches_attempt_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("attempt_id", "first_seq", name=op.f("pk_telemetry_batches")),
    )
    op.create_table(
        "threshold_crossings",
        sa.Column("threshold_id", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("env_step", sa.BigInteger(), nullable=False),
        sa.Column("wall", sa.Float(precision=53), nullable=False),
        sa.Column("seconds", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_threshold_crossings_run_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["threshold_id"],
            ["thresholds.id"],
            name=op.f("fk_threshold_crossings_threshold_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("threshold_id", "run_id", name=op.f("pk_threshold_crossings")),
    )
    op.create_index(
        "ix_threshold_crossings_env_step",
        "threshold_crossings",
        ["threshold_id", "env_step", "run_id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_threshold_crossings_run_id"), "threshold_crossings", ["run_id"], unique=False
    )
    op.create_index(
        "ix_threshold_crossings_seconds",
        "threshold_crossings",
        ["threshold_id", "seconds", "run_id"],
        unique=False,
    )
    op.create_table(
        "curve_blocks",
        sa.Column("id", big_key(), autoincrement=True, nullable=False),
        sa.Column("series_id", sa.BigInteger(), nullable=False),
        sa.Column("attempt_id", sa.String(length=64), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("first_seq", sa.BigInteger(), nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("points", sa.Integer(), nullable=False),
        sa.Column("env_step_low", sa.BigInteger(), nullable=False),
        sa.Column("env_step_high", sa.BigInteger(), nullable=False),
        sa.Column("update_low", sa.BigInteger(), nullable=False),
        sa.Column("update_high", sa.BigInteger(), nullable=False),
        sa.Column("episode_low", sa.BigInteger(), nullable=False),
        sa.Column("episode_high", sa.BigInteger(), nullable=False),
        sa.Column("wall_low", sa.BigInteger(), nullable=False),
        sa.Column("wall_high", sa.BigInteger(), nullable=False),
        sa.Column("levels", sa.BigInteger(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["series_id"], ["series.id"], name=op.f("fk_curve_blocks_series_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_curve_blocks")),
    )
    op.create_index(
        "uq_curve_blocks_order",
        "curve_blocks",
        ["series_id", "fence", "attempt_id", "first_seq"],
        unique=True,
    )
    op.create_table(
        "curve_rollups",
        sa.Column("series_id", sa.BigInteger(), nullable=False),
        sa.Column("axis", sa.SmallInteger(), nullable=False),
        sa.Column("level", sa.SmallInteger(), nullable=False),
        sa.Column("block_id", sa.BigInteger(), nullable=False),
        sa.Column("cells", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["series_id"],
            ["series.id"],
            name=op.f("fk_curve_rollups_series_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "series_id", "axis", "level", "block_id", name=op.f("pk_curve_rollups")
        ),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "snapshot_files",
        sa.Column("snapshot_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("artifact_id", sa.String(length=64), nullable=True),
        sa.ForeignKeyConstraint(
            ["snapshot_id"],
            ["snapshots.id"],
            name=op.f("fk_snapshot_files_snapshot_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("snapshot_id", "name", name=op.f("pk_snapshot_files")),
    )


def downgrade() -> None:
    op.drop_table("snapshot_files")
    op.drop_table("curve_rollups")
    op.drop_table("curve_blocks")
    op.drop_table("threshold_crossings")
    op.drop_table("telemetry_batches")
    op.drop_table("snapshots")
    op.drop_table("series_summaries")
    op.drop_table("series")
    op.drop_table("run_summaries")
    op.drop_table("run_findings")
    op.drop_table("open_log_lines")
    op.drop_table("log_blocks")
    op.drop_table("job_runs")
    op.drop_table("evaluations")
    op.drop_table("epoch_stats")
    op.drop_table("epoch_blocks")
    op.drop_table("curve_tails")
    op.drop_table("attempt_runs")
    op.drop_table("artifacts")
    op.drop_table("runs")
    op.drop_table("job_dependencies")
    op.drop_table("attempts")
    op.drop_table("submissions")
    op.drop_table("jobs")
    op.drop_table("definition_members")
    op.drop_table("views")
    op.drop_table("tokens")
    op.drop_table("thresholds")
    op.drop_table("setups")
    op.drop_table("quotas")
    op.drop_table("project_pools")
    op.drop_table("pool_windows")
    op.drop_table("memberships")
    op.drop_table("login_sessions")
    op.drop_table("login_links")
    op.drop_table("experiments")
    op.drop_table("enrolment_tokens")
    op.drop_table("blobs")
    op.drop_table("workers")
    op.drop_table("users")
    op.drop_table("usage_entries")
    op.drop_table("usage_accounts")
    op.drop_table("summary_progress")
    op.drop_table("start_estimates")
    op.drop_table("server_uptime")
    op.drop_table("series_names")
    op.drop_table("queue_groups")
    op.drop_table("projects")
    op.drop_table("pools")
    op.drop_table("pool_hours")
    op.drop_table("invitations")
    op.drop_table("idempotency_keys")
    op.drop_table("events")
    op.drop_table("dispatcher_lease")
    op.drop_table("audit_chain")
    op.drop_table("audit")
