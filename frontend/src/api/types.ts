/**
 * Short names for the API's documents. The shapes are generated from the server's OpenAPI document
 * (`npm run generate`).
 */
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Experiment = Schemas["ExperimentView"];
export type ExperimentDetail = Schemas["ExperimentDetail"];
export type Score = Schemas["ScoreView"];
export type Run = Schemas["RunView"];
export type RunDetail = Schemas["RunDetail"];
export type RunGroup = Schemas["RunGroupView"];
export type RunKeys = Schemas["RunKeysView"];
export type RunVerb = Schemas["RunVerb"];
export type RunSelection = Partial<Schemas["RunSelection"]>;
export type RunsActed = Schemas["RunsActed"];
/** What the page of runs shows. The server sends every member. */
export type RunsPageState = Required<Schemas["RunsPageState"]>;
export type SavedView = Schemas["SavedViewView"];
export type SavedViewDetail = Schemas["SavedViewDetail"] & { usable_state: RunsPageState };
export type ViewVisibility = Schemas["ViewVisibility"];
export type Attempt = Schemas["AttemptView"];
export type Job = Schemas["JobView"];
export type JobExplanation = Schemas["JobExplanation"];
export type JobVerb = Schemas["JobVerb"];
export type JobSelection = Partial<Schemas["JobSelection"]>;
export type JobsActed = Schemas["JobsActed"];
export type JobChange = Partial<Schemas["JobChange"]>;
export type PriorityClass = Schemas["PriorityClass"];
export type WaitingQueue = Schemas["WaitingQueueView"];
export type Lane = Schemas["LaneView"];
export type Overview = Schemas["OverviewView"];
export type Evaluation = Schemas["EvaluationView"];
export type Backlog = Schemas["BacklogView"];
export type Snapshot = Schemas["SnapshotView"];
export type Artifact = Schemas["ArtifactView"];
export type Provenance = Schemas["ProvenanceView"];
export type Worker = Schemas["WorkerView"];
/** A pool. The server sends every member; an older server may omit some of them. */
export type Pool = Required<Schemas["PoolView"]>;
export type PoolRequest = Partial<Schemas["PoolRequest"]> & { name: string };
export type PoolChange = Schemas["PoolChange"];
export type ProjectQuotas = Schemas["ProjectQuotasView"];
export type Quota = Schemas["QuotaView"];
export type QuotaChange = Schemas["QuotaChange"];
export type QuotaState = Schemas["QuotaStateView"];
export type PoolProject = Schemas["PoolProjectView"];
export type PoolShares = Schemas["PoolSharesView"];
export type UsageReport = Schemas["UsageReport"];
export type UsageGroup = Required<Schemas["UsageGroup"]>;
export type PoolOccupancy = Schemas["PoolOccupancy"];
export type Threshold = Schemas["ThresholdView"];
export type ThresholdRequest = Schemas["ThresholdRequest"];
export type PoolWindow = Schemas["PoolWindowView"];
export type PoolWindowRequest = Partial<Schemas["PoolWindowRequest"]> &
  Pick<Schemas["PoolWindowRequest"], "kind" | "start" | "end">;
export type EnrolmentToken = Schemas["EnrolmentTokenView"];
export type Catalogue = Schemas["CatalogueView"];
export type JobOptions = Schemas["JobOptions"];
export type JobRequest = Schemas["JobRequest"];
export type Preset = Schemas["PresetView"];
export type SubmittedExperiment = Schemas["SubmittedExperiment"];
export type OwnQuotas = Schemas["OwnQuotasView"];
export type EstimateAccuracy = Schemas["EstimateAccuracy"];
export type ChangePreview = Schemas["ChangePreview"];
export type SubmissionPreview = Schemas["SubmissionPreview"];
export type LoginOptions = Schemas["LoginOptions"];
/** A session. The server sends every member; an older server may omit some of them. */
export type Session = Required<Schemas["SessionView"]>;
export type AuditEntry = Schemas["AuditEntry"];
export type Member = Schemas["MemberView"];
export type Project = Schemas["ProjectView"];
export type DeletedProject = Schemas["DeletedProjectView"];
export type ProjectRequest = Partial<Schemas["ProjectRequest"]> & { name: string };
export type ProjectChange = Schemas["ProjectChange"];
export type ServiceAccount = Schemas["ServiceAccountView"];
export type Token = Schemas["TokenView"];
export type Account = Schemas["AccountView"];
export type LoginSession = Schemas["LoginSessionView"];
export type Scope = Schemas["Scope"];
/** A person who may log in, or who is disabled. */
export type Person = Schemas["UserView"];
export type PersonDetail = Schemas["UserDetail"];
export type Owned = Schemas["OwnedView"];
export type PersonChange = Partial<Schemas["UserChange"]>;
export type JobsOfPerson = Schemas["DisableRequest"]["jobs"];
export type PersonDisabled = Schemas["UserDisabled"];
export type PersonDeleted = Schemas["UserDeleted"];
export type LinkPreview = Schemas["LinkPreview"];
export type OneTimeLink = Schemas["LoginLinkView"];
export type Invitation = Schemas["InvitationView"];
export type InviteRequest = Schemas["InviteRequest"];
export type Role = Schemas["Role"];
export type Membership = Schemas["MembershipView"];
export type Permission = Schemas["Permission"];
export type SeriesInfo = Schemas["SeriesInfo"];
/** Members that are left out have the defaults of the API. */
export type ComparisonQuery = Partial<Schemas["ComparisonQuery"]>;
export type ComparisonResult = Schemas["ComparisonResult"];
export type ComparedField = Schemas["ComparedField"];
export type SeriesQuery = Partial<Schemas["SeriesQuery"]>;
export type SeriesResult = Schemas["SeriesResult"];
export type GridSeries = Schemas["GridSeries"];
export type GridGroup = Schemas["GridGroup"];
/** Members that are left out have the defaults of the API. */
export type StatisticsQuery = Partial<Omit<Schemas["StatisticsQuery"], "score">> & {
  score?: Partial<Schemas["ScoreRule"]>;
};
export type StatisticsResult = Schemas["StatisticsResult"];
export type GroupStatistics = Schemas["GroupStatistics"];
export type LogPage = Schemas["LogView"];
export type LogLine = Schemas["LogLine"];
export type OpenLogLine = Schemas["OpenLogLine"];
export type Problem = Schemas["Problem"];
export type RunState = Schemas["RunState"];
export type JobState = Schemas["JobState"];
export type AttemptState = Schemas["AttemptState"];
export type WorkerState = Schemas["WorkerState"];
export type Schedule = Schemas["Schedule"];
export type EvaluationSource = Schemas["EvaluationSource"];

export interface Page<Item> {
  items: Item[];
  next_cursor: string | null;
}

/**
 * One row of the event log, as the stream sends it (`EventView` of the contract; a stream has no
 * schema in OpenAPI).
 */
export interface LiveEvent {
  /** Cursor. */
  id: number;
  type: string;
  experiment_id: string | null;
  run_id: string | null;
  job_id: string | null;
  at: string;
  data: Record<string, unknown>;
}
