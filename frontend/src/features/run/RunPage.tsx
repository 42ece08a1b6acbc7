import { Skeleton, Tabs } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, Navigate, useNavigate } from "@tanstack/react-router";
import { useCallback, useEffect } from "react";
import { type ApiError, isMissing } from "@/api/client";
import { experimentRunsQuery, runQuery } from "@/api/queries";
import type { RunDetail } from "@/api/types";
import { chooseMemberColor } from "@/lib/color";
import { findQueryError } from "@/lib/outage";
import { tidy } from "@/lib/search";
import { registerShortcuts } from "@/lib/shortcuts";
import { Dot } from "@/ui/Dot";
import { Failure } from "@/ui/Failure";
import { Page, Panel } from "@/ui/Page";
import { StateBadge } from "@/ui/StateBadge";
import { useScheme } from "@/ui/scheme";
import { AttemptsTab } from "./AttemptsTab";
import { CurvesTab } from "./CurvesTab";
import { EpisodesTab } from "./EpisodesTab";
import { EvaluationDrawer } from "./EvaluationDrawer";
import { EvaluationsTab } from "./EvaluationsTab";
import { FilesTab } from "./FilesTab";
import { FindingsPanel } from "./FindingsPanel";
import { LogTab } from "./LogTab";
import { ProvenanceTab } from "./ProvenanceTab";
import { RunActions } from "./RunActions";
import { QualityBadge, RunFacts } from "./RunFacts";
import classes from "./RunPage.module.css";
import { RunProblems } from "./RunProblems";
import { type ChangeSearch, type RunSearch, TABS, type Tab } from "./search";
import { useLiveRun } from "./useLiveRun";
import { useRunOrigin } from "./useRunOrigin";
import { VideosTab } from "./VideosTab";

const route = getRouteApi("/inside/p/$project/runs/$runId");
const LABELS: Record<Tab, string> = {
  curves: "Curves",
  evaluations: "Evaluations",
  episodes: "Episodes",
  videos: "Videos",
  log: "Log",
  files: "Files",
  attempts: "Attempts",
  provenance: "Provenance",
};

export function RunPage({ id }: { id: string }) {
  const run = useQuery(runQuery(id));
  const { project } = route.useParams();
  const search = route.useSearch();
  const problem = findQueryError(run);
  if (run.isPending && problem === null) return <Waiting />;
  // A run that was shown may have been moved to a project of which the user is no member.
  if (run.data === undefined || isMissing(run.error)) {
    return (
      <Page title="Run">
        <Panel>
          <Failure error={problem as unknown as ApiError} retry={() => void run.refetch()} />
        </Panel>
      </Page>
    );
  }
  return run.data.project === project ? (
    <Loaded run={run.data} />
  ) : (
    <Navigate
      to="/p/$project/runs/$runId"
      params={{ project: run.data.project, runId: id }}
      search={search}
      replace
    />
  );
}

function Loaded({ run }: { run: RunDetail }) {
  const search = route.useSearch();
  const navigate = useNavigate();
  const origin = useRunOrigin(run.id, search.x === "relative");
  const live = useLiveRun(run, search, origin);
  const color = useRunColor(run);
  const change: ChangeSearch = useCallback(
    (part) =>
      void navigate({
        to: "/p/$project/runs/$runId",
        params: { project: run.project, runId: run.id },
        search: (before) => tidy({ ...before, ...part }) as RunSearch,
        replace: true,
        resetScroll: false,
      }),
    [navigate, run.project, run.id],
  );
  useEffect(
    () =>
      registerShortcuts(
        TABS.map((tab, i) => ({
          keys: String(i + 1),
          what: LABELS[tab],
          run: () => change({ tab }),
        })),
      ),
    [change],
  );
  const tab = search.tab ?? "curves";
  return (
    <Page
      title={`${run.definition.name} seed ${run.seed}`}
      crumbs={
        <>
          <Link to="/p/$project/experiments" params={{ project: run.project }}>
            Experiments
          </Link>
          <span>/</span>
          <Link
            to="/p/$project/experiments/$experimentId"
            params={{ project: run.project, experimentId: run.experiment_id }}
          >
            {run.definition.name}
          </Link>
        </>
      }
      heading={
        <>
          <Dot color={color} />
          Seed {run.seed}
          {run.replicate > 0 && <span className="faint">replicate {run.replicate}</span>}
          <StateBadge state={run.state} phase={run.phase} />
          <QualityBadge quality={run.resume_quality} />
        </>
      }
      facts={<RunFacts run={run} />}
      actions={<RunActions run={run} />}
    >
      <RunProblems run={run} />
      <FindingsPanel findings={run.findings} onShow={change} />
      <Tabs
        value={tab}
        onChange={(next) => change({ tab: next === "curves" ? undefined : (next as Tab) })}
        keepMounted={false}
      >
        <Tabs.List mb="md" className={classes.tabs ?? ""}>
          {TABS.map((one) => (
            <Tabs.Tab key={one} value={one}>
              {LABELS[one]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value="curves">
          <CurvesTab
            run={run}
            state={live.curves}
            color={color}
            search={search}
            change={change}
            origin={origin}
          />
        </Tabs.Panel>
        <Tabs.Panel value="evaluations">
          <EvaluationsTab run={run} color={color} onOpen={(evaluation) => change({ evaluation })} />
        </Tabs.Panel>
        <Tabs.Panel value="episodes">
          <EpisodesTab run={run} />
        </Tabs.Panel>
        <Tabs.Panel value="videos">
          <VideosTab run={run} />
        </Tabs.Panel>
        <Tabs.Panel value="log">
          <LogTab run={run} tail={live.log} />
        </Tabs.Panel>
        <Tabs.Panel value="files">
          <FilesTab run={run} />
        </Tabs.Panel>
        <Tabs.Panel value="attempts">
          <AttemptsTab run={run} />
        </Tabs.Panel>
        <Tabs.Panel value="provenance">
          <ProvenanceTab run={run} />
        </Tabs.Panel>
      </Tabs>
      <EvaluationDrawer
        run={run}
        id={search.evaluation}
        color={color}
        onOpen={(evaluation) => change({ evaluation })}
        onClose={() => change({ evaluation: undefined })}
      />
    </Page>
  );
}

/** Returns the colour of the run's seed on the page of its experiment. */
function useRunColor(run: RunDetail): string {
  const scheme = useScheme();
  const siblings = useQuery(experimentRunsQuery(run.project, run.experiment_id));
  const all = siblings.data ?? [];
  const index = all.findIndex((one) => one.id === run.id);
  return chooseMemberColor(run.experiment_id, Math.max(0, index), Math.max(1, all.length), scheme);
}

function Waiting() {
  return (
    <Page title="Run" heading={<Skeleton height={22} width={220} />}>
      <Skeleton height={36} aria-busy="true" />
      <Skeleton height={420} radius={10} />
    </Page>
  );
}
