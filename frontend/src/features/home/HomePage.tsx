import { Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { ApiError } from "@/api/client";
import { sessionQuery } from "@/api/queries";
import { overviewQuery, poolsQuery, workersQuery } from "@/api/queueQueries";
import { findQueryError } from "@/lib/outage";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { Page, Panel } from "@/ui/Page";
import classes from "./Home.module.css";
import { NextJob } from "./NextJob";
import { FailedRuns, RunningRuns } from "./OwnRuns";
import { Projects } from "./Projects";
import { Slots } from "./Slots";
import { StartCard } from "./StartCard";
import { HEARTBEAT_MS, useLiveHome } from "./useLiveHome";

/**
 * The caller's runs and next job, the slots of the pools, and the projects.
 *
 * @param children Panels below, which follow the same stream.
 * @param hasExperiments Whether any project of the caller has one; `null` if it is not known yet.
 */
export function HomePage({
  children,
  hasExperiments,
}: {
  children: ReactNode;
  hasExperiments: boolean | null;
}) {
  const projects = useQuery(sessionQuery).data?.projects ?? [];
  // Events bring all changes but the progress of runs, estimates of starts and silent workers.
  const overview = useQuery({ ...overviewQuery, refetchInterval: 6 * HEARTBEAT_MS });
  const workers = useQuery({ ...workersQuery, refetchInterval: HEARTBEAT_MS });
  const pools = useQuery({ ...poolsQuery, refetchInterval: 6 * HEARTBEAT_MS });
  useLiveHome();
  const problem = findQueryError(overview);
  const found = overview.data;
  if (projects.length === 0) return <NoProject />;
  if (found === undefined)
    return (
      <Page title="Home">
        {problem !== null ? (
          <Panel>
            <Failure error={problem as ApiError} retry={() => void overview.refetch()} />
          </Panel>
        ) : (
          <Skeleton height={220} radius={10} />
        )}
      </Page>
    );
  const isEmpty = hasExperiments === false;
  return (
    <Page title="Home">
      {isEmpty && workers.data !== undefined && <StartCard workers={workers.data} />}
      {!isEmpty && (
        <div className={classes.top}>
          <NextJob overview={found} />
          <RunningRuns overview={found} />
        </div>
      )}
      {found.failed.length > 0 && <FailedRuns overview={found} />}
      <Slots
        workers={workers.data ?? []}
        pools={pools.data ?? []}
        running={found.running}
        isLoading={workers.isPending || pools.isPending}
      />
      <Projects projects={projects} numbers={found.projects} />
      {!isEmpty && children}
    </Page>
  );
}

function NoProject() {
  return (
    <Page title="Home">
      <Panel>
        <EmptyState title="You are a member of no project yet">
          Experiments belong to projects. Ask a maintainer of a project, or an administrator of the
          server, to add you; then this page lists it.
        </EmptyState>
      </Panel>
    </Page>
  );
}
