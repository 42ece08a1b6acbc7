"""All tables. Importing this module fills `Base.metadata`."""

from app.db.models.access import IdempotencyKeyRow, LoginLinkRow, LoginSessionRow, TokenRow
from app.db.models.artifacts import ArtifactRow, BlobRow
from app.db.models.audit import AuditChainRow, AuditRow
from app.db.models.base import Base
from app.db.models.curves import (
    BlockRow,
    EpochBlockRow,
    EpochStatsRow,
    EvaluationRow,
    RollupRow,
    SeriesRow,
    TailRow,
    TelemetryBatchRow,
)
from app.db.models.dispatcher_lease import DispatcherLeaseRow
from app.db.models.events import EventRow
from app.db.models.experiments import ExperimentRow, RunRow, SubmissionRow
from app.db.models.invitations import InvitationRow
from app.db.models.jobs import (
    AttemptRow,
    AttemptRunRow,
    JobDependencyRow,
    JobRow,
    JobRunRow,
)
from app.db.models.logs import LogBlockRow, OpenLogLinesRow
from app.db.models.pools import EnrolmentTokenRow, PoolRow, PoolWindowRow, ProjectPoolRow, QuotaRow
from app.db.models.projects import MembershipRow, ProjectRow, UserRow
from app.db.models.saved_views import SavedViewRow
from app.db.models.snapshots import SnapshotFileRow, SnapshotRow
from app.db.models.start_estimates import StartEstimateRow
from app.db.models.summaries import (
    DefinitionMemberRow,
    FindingRow,
    RunSummaryRow,
    SeriesNameRow,
    SeriesSummaryRow,
    SetupRow,
    SummaryProgressRow,
    ThresholdCrossingRow,
    ThresholdRow,
)
from app.db.models.uptime import ServerUptimeRow
from app.db.models.usage import PoolHourRow, QueueGroupRow, UsageAccountRow, UsageEntryRow
from app.db.models.workers import WorkerRow

__all__ = [
    "ArtifactRow",
    "AttemptRow",
    "AttemptRunRow",
    "AuditChainRow",
    "AuditRow",
    "Base",
    "BlobRow",
    "BlockRow",
    "DefinitionMemberRow",
    "DispatcherLeaseRow",
    "EnrolmentTokenRow",
    "EpochBlockRow",
    "EpochStatsRow",
    "EvaluationRow",
    "EventRow",
    "ExperimentRow",
    "FindingRow",
    "IdempotencyKeyRow",
    "InvitationRow",
    "JobDependencyRow",
    "JobRow",
    "JobRunRow",
    "LogBlockRow",
    "LoginLinkRow",
    "LoginSessionRow",
    "MembershipRow",
    "OpenLogLinesRow",
    "PoolHourRow",
    "PoolRow",
    "PoolWindowRow",
    "ProjectPoolRow",
    "ProjectRow",
    "QueueGroupRow",
    "QuotaRow",
    "RollupRow",
    "RunRow",
    "RunSummaryRow",
    "SavedViewRow",
    "SeriesNameRow",
    "SeriesRow",
    "SeriesSummaryRow",
    "ServerUptimeRow",
    "SetupRow",
    "SnapshotFileRow",
    "SnapshotRow",
    "StartEstimateRow",
    "SubmissionRow",
    "SummaryProgressRow",
    "TailRow",
    "TelemetryBatchRow",
    "ThresholdCrossingRow",
    "ThresholdRow",
    "TokenRow",
    "UsageAccountRow",
    "UsageEntryRow",
    "UserRow",
    "WorkerRow",
]
