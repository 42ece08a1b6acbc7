"""All tables of version 0.1.0.

Revision: 0001
Revises: nothing
"""

# ruff: noqa: PLR0915 - one statement per table
import sqlalchemy as sa
from alembic import op

from migrations.types import big_key, document, instant

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
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
        "projects",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_projects")),
        sa.UniqueConstraint("name", name=op.f("uq_projects_name")),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("password_hash", sa.String(length=256), nullable=True),
        sa.Column("created_at", instant(), nullable=False),
        sa.Column("disabled_at", instant(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("name", name=op.f("uq_users_name")),
    )
    op.create_table(
        "audit",
        sa.Column("id", big_key(), autoincrement=True, nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("actor", sa.String(length=96), nullable=False),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("object_type", sa.String(length=32), nullable=False),
        sa.Column("object_id", sa.String(length=96), nullable=False),
        sa.Column("data", document(), nullable=False),
        sa.Column("at", instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_audit_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_index(
        op.f("ix_audit_project_id_object_type_object_id_id"),
        "audit",
        ["project_id", "object_type", "object_id", "id"],
        unique=False,
    )
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
        "idempotency_keys",
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("request_hash", sa.String(length=64), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("location", sa.String(length=512), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_idempotency_keys_project_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("project_id", "user_id", "key", name=op.f("pk_idempotency_keys")),
    )
    op.create_table(
        "login_links",
        sa.Column("code_hash", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.String(length=64), nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.Column("expires_at", instant(), nullable=False),
        sa.Column("used_at", instant(), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_login_links_project_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_login_links_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("code_hash", name=op.f("pk_login_links")),
    )
    op.create_table(
        "login_sessions",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.String(length=64), nullable=False),
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.Column("last_used_at", instant(), nullable=False),
        sa.Column("ended_at", instant(), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_login_sessions_project_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_login_sessions_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_login_sessions")),
        sa.UniqueConstraint("secret_hash", name=op.f("uq_login_sessions_secret_hash")),
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
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("scopes", document(), nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.Column("expires_at", instant(), nullable=True),
        sa.Column("last_used_at", instant(), nullable=True),
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
    op.create_index(
        op.f("ix_tokens_project_id_created_at_id"),
        "tokens",
        ["project_id", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "workers",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("pool", sa.String(length=64), nullable=False),
        sa.Column("host", sa.String(length=64), nullable=False),
        sa.Column("boot_id", sa.String(length=64), nullable=False),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("gpus", document(), nullable=False),
        sa.Column("gpu_count", sa.Integer(), nullable=False),
        sa.Column("work_order_versions", document(), nullable=False),
        sa.Column("version", sa.String(length=64), nullable=False),
        sa.Column("hardware", document(), nullable=False),
        sa.Column("packages", document(), nullable=False),
        sa.Column("catalogue", document(), nullable=False),
        sa.Column("silent_seconds", sa.Float(precision=53), nullable=False),
        sa.Column("draining", sa.Boolean(), nullable=False),
        sa.Column("created_by", sa.String(length=64), nullable=False),
        sa.Column("registered_at", instant(), nullable=False),
        sa.Column("last_heartbeat_at", instant(), nullable=False),
        sa.ForeignKeyConstraint(["created_by"], ["users.id"], name=op.f("fk_workers_created_by")),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_workers_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workers")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_workers_project_id_name")),
    )
    op.create_index(
        op.f("ix_workers_project_id_pool"), "workers", ["project_id", "pool"], unique=False
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
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("gpus", sa.Integer(), nullable=False),
        sa.Column("resources", document(), nullable=False),
        sa.Column("limits", document(), nullable=False),
        sa.Column("evaluate", document(), nullable=True),
        sa.Column("work_order_version", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("infrastructure_failures", sa.Integer(), nullable=False),
        sa.Column("counted_failures", sa.Integer(), nullable=False),
        sa.Column("quick_deaths", sa.Integer(), nullable=False),
        sa.Column("not_before", instant(), nullable=True),
        sa.Column("rung_at", instant(), nullable=True),
        sa.Column("rings", sa.Integer(), nullable=False),
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
        op.f("ix_runs_project_id_created_at_id"),
        "runs",
        ["project_id", "created_at", "id"],
        unique=False,
    )
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
        op.f("ix_evaluations_run_id_fence_seq"),
        "evaluations",
        ["run_id", "fence", "seq"],
        unique=False,
    )
    op.create_index(
        op.f("ix_evaluations_snapshot_id"), "evaluations", ["snapshot_id"], unique=False
    )
    op.create_table(
        "job_runs",
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
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
    op.create_index(
        op.f("ix_snapshots_run_id_fence_seq"), "snapshots", ["run_id", "fence", "seq"], unique=False
    )
    op.create_table(
        "telemetry_batches",
        sa.Column("attempt_id", sa.String(length=64), nullable=False),
        sa.Column("first_seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
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
        "series_blocks",
        sa.Column("id", big_key(), autoincrement=True, nullable=False),
        sa.Column("series_id", sa.BigInteger(), nullable=False),
        sa.Column("attempt_id", sa.String(length=64), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("first_seq", sa.BigInteger(), nullable=False),
        sa.Column("points", sa.Integer(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"],
            ["attempts.id"],
            name=op.f("fk_series_blocks_attempt_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["series_id"],
            ["series.id"],
            name=op.f("fk_series_blocks_series_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_series_blocks")),
        sa.UniqueConstraint(
            "series_id",
            "attempt_id",
            "first_seq",
            name=op.f("uq_series_blocks_series_id_attempt_id_first_seq"),
        ),
    )
    op.create_index(
        op.f("ix_series_blocks_series_id_fence_first_seq"),
        "series_blocks",
        ["series_id", "fence", "first_seq"],
        unique=False,
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
    op.drop_index(op.f("ix_series_blocks_series_id_fence_first_seq"), table_name="series_blocks")
    op.drop_table("series_blocks")
    op.drop_table("telemetry_batches")
    op.drop_index(op.f("ix_snapshots_run_id_fence_seq"), table_name="snapshots")
    op.drop_table("snapshots")
    op.drop_table("series")
    op.drop_table("log_blocks")
    op.drop_index(op.f("ix_job_runs_run_id"), table_name="job_runs")
    op.drop_table("job_runs")
    op.drop_index(op.f("ix_evaluations_snapshot_id"), table_name="evaluations")
    op.drop_index(op.f("ix_evaluations_run_id_fence_seq"), table_name="evaluations")
    op.drop_table("evaluations")
    op.drop_index(op.f("ix_epoch_stats_run_id_fence_seq"), table_name="epoch_stats")
    op.drop_table("epoch_stats")
    op.drop_index(
        "uq_attempt_runs_live_training",
        table_name="attempt_runs",
        sqlite_where=sa.text("live_training"),
        postgresql_where=sa.text("live_training"),
    )
    op.drop_index(op.f("ix_attempt_runs_run_id_fence"), table_name="attempt_runs")
    op.drop_table("attempt_runs")
    op.drop_index(op.f("ix_artifacts_run_id_created_at_id"), table_name="artifacts")
    op.drop_index(op.f("ix_artifacts_blob_id"), table_name="artifacts")
    op.drop_table("artifacts")
    op.drop_index(op.f("ix_runs_project_id_created_at_id"), table_name="runs")
    op.drop_table("runs")
    op.drop_index(
        "uq_attempts_live_slot",
        table_name="attempts",
        sqlite_where=sa.text("state IN ('starting', 'running')"),
        postgresql_where=sa.text("state IN ('starting', 'running')"),
    )
    op.drop_index(
        "uq_attempts_live_job",
        table_name="attempts",
        sqlite_where=sa.text("state IN ('starting', 'running')"),
        postgresql_where=sa.text("state IN ('starting', 'running')"),
    )
    op.drop_table("attempts")
    op.drop_index(op.f("ix_submissions_project_id_experiment_id"), table_name="submissions")
    op.drop_table("submissions")
    op.drop_index(op.f("ix_jobs_state_pool"), table_name="jobs")
    op.drop_index(op.f("ix_jobs_project_id_experiment_id"), table_name="jobs")
    op.drop_index(op.f("ix_jobs_project_id_created_at_id"), table_name="jobs")
    op.drop_table("jobs")
    op.drop_index(op.f("ix_workers_project_id_pool"), table_name="workers")
    op.drop_table("workers")
    op.drop_index(op.f("ix_tokens_project_id_created_at_id"), table_name="tokens")
    op.drop_table("tokens")
    op.drop_table("memberships")
    op.drop_table("login_sessions")
    op.drop_table("login_links")
    op.drop_table("idempotency_keys")
    op.drop_index(op.f("ix_experiments_project_id_name_id"), table_name="experiments")
    op.drop_index(op.f("ix_experiments_project_id_created_at_id"), table_name="experiments")
    op.drop_table("experiments")
    op.drop_table("blobs")
    op.drop_index(op.f("ix_audit_project_id_object_type_object_id_id"), table_name="audit")
    op.drop_table("audit")
    op.drop_table("users")
    op.drop_table("projects")
    op.drop_index(op.f("ix_events_project_id_id"), table_name="events")
    op.drop_table("events")
