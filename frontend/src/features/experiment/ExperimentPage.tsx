import { Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { type ApiError, isMissing } from "@/api/client";
import { experimentQuery, experimentRunsQuery } from "@/api/queries";
import type { ExperimentDetail, Run } from "@/api/types";
import { chooseGroupColor } from "@/lib/color";
import { formatAge, formatMoment, formatPlural } from "@/lib/format";
import { findQueryError } from "@/lib/outage";
import { tidy } from "@/lib/search";
import { CopyButton } from "@/ui/Copy";
import { Dot } from "@/ui/Dot";
import { Failure } from "@/ui/Failure";
import { Page, Panel } from "@/ui/Page";
import { ScoreText } from "@/ui/ScoreText";
import { StateBadge } from "@/ui/StateBadge";
import { useScheme } from "@/ui/scheme";
import { Actions } from "./Actions";
import { DefinitionPanel } from "./DefinitionPanel";
import { EvaluationPanel } from "./EvaluationPanel";
import classes from "./ExperimentPage.module.css";
import { AdviceBanner, FailuresBanner } from "./FailuresBanner";
import { FinalScores } from "./FinalScores";
import { MissingExperiment } from "./MissingExperiment";
import { NewJobs } from "./NewJobs";
import { RunsPanel } from "./RunsPanel";
import type { ChangeSearch, ExperimentSearch } from "./search";
import { useLiveExperiment } from "./useLiveExperiment";

const route = getRouteApi("/inside/p/$project/experiments/$experimentId");

export function ExperimentPage({ project, id }: { project: string; id: string }) {
  const experiment = useQuery(experimentQuery(project, id));
  const runs = useQuery(experimentRunsQuery(project, id));
  const wasMoved = useLiveExperiment(project, id);
  if (isMissing(experiment.error)) return <MissingExperiment {...{ project, id, wasMoved }} />;
  const problem = findQueryError(experiment) ?? findQueryError(runs);
  const missing = experiment.data === undefined || runs.data === undefined;
  if (missing && problem === null) return <Waiting />;
  if (missing) {
    return (
      <Page title="Experiment">
        <Panel>
          <Failure
            error={problem as ApiError}
            retry={() => void Promise.all([experiment.refetch(), runs.refetch()])}
          />
        </Panel>
      </Page>
    );
  }
  return <Loaded experiment={experiment.data} runs={runs.data} />;
}

function Loaded({ experiment, runs }: { experiment: ExperimentDetail; runs: Run[] }) {
  const search = route.useSearch();
  const navigate = useNavigate();
  const scheme = useScheme();
  const change: ChangeSearch = (part) =>
    void navigate({
      to: "/p/$project/experiments/$experimentId",
      params: { project: experiment.project, experimentId: experiment.id },
      search: tidy({ ...search, ...part }) as ExperimentSearch,
      replace: true,
      resetScroll: false,
    });
  return (
    <Page
      title={experiment.name}
      crumbs={
        <Link to="/p/$project/experiments" params={{ project: experiment.project }}>
          Experiments
        </Link>
      }
      heading={
        <>
          <Dot color={chooseGroupColor(experiment.id, scheme)} />
          {experiment.name}
          <StateBadge state={experiment.state} />
          {experiment.archived_at && <StateBadge state="archived" />}
        </>
      }
      facts={<PageFacts experiment={experiment} runs={runs} />}
      actions={
        <>
          <NewJobs experiment={experiment} runs={runs} />
          <Actions experiment={experiment} runs={runs} />
        </>
      }
    >
      <FailuresBanner experiment={experiment} />
      <AdviceBanner experiment={experiment} />
      <div className={classes.columns}>
        <div className={classes.main}>
          <EvaluationPanel experiment={experiment} runs={runs} search={search} change={change} />
          <FinalScores experiment={experiment} runs={runs} search={search} change={change} />
          <RunsPanel experiment={experiment} runs={runs} search={search} change={change} />
        </div>
        <DefinitionPanel experiment={experiment} search={search} change={change} />
      </div>
    </Page>
  );
}

function PageFacts({ experiment, runs }: { experiment: ExperimentDetail; runs: readonly Run[] }) {
  const score = experiment.latest_evaluation;
  return (
    <>
      <span>
        {experiment.agent} on {experiment.env}
      </span>
      <span>{formatPlural(runs.length, "run")}</span>
      {score && (
        <span title="Over the latest evaluation of each run">
          latest {score.metric ?? "evaluation"}{" "}
          <ScoreText mean={score.mean} spread={score.stdev} kind="sd" n={score.runs} of="run" />
        </span>
      )}
      <span title={formatMoment(experiment.created_at)}>
        by {experiment.created_by}, {formatAge(experiment.created_at)}
      </span>
      <span className={classes.id}>
        <code>{experiment.id}</code>
        <CopyButton text={experiment.id} label="Copy ID" />
      </span>
    </>
  );
}

function Waiting() {
  return (
    <Page title="Experiment" heading={<Skeleton height={22} width={260} />}>
      <div className={classes.columns} aria-busy="true">
        <Skeleton height={420} radius={10} />
        <Skeleton height={420} radius={10} />
      </div>
    </Page>
  );
}
