import { Button, Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { ApiError, findFaultAt } from "@/api/client";
import { comparisonQuery } from "@/api/statisticsQueries";
import type { ComparisonQuery, ComparisonResult } from "@/api/types";
import { findQueryError } from "@/lib/outage";
import { tidy } from "@/lib/search";
import { Banner } from "@/ui/Banner";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { Page, Panel } from "@/ui/Page";
import { useScheme } from "@/ui/scheme";
import { CodePanel } from "./CodePanel";
import { Controls } from "./Controls";
import { Curves } from "./Curves";
import { Differences } from "./Differences";
import { listMembers } from "./members";
import { Parameters } from "./Parameters";
import { Scores } from "./Scores";
import {
  buildComparisonQuery,
  type CompareChange,
  type CompareSearch,
  isEmpty,
  readCompareSearch,
} from "./search";

const route = getRouteApi("/inside/p/$project/compare");

/** 2 to 30 runs or groups side by side: definitions, code, curves, scores, importance. */
export function ComparePage() {
  const search = readCompareSearch(route.useSearch());
  const { project } = route.useParams();
  const navigate = useNavigate();
  const request = buildComparisonQuery(project, search);
  const empty = isEmpty(search);
  const query = useQuery({ ...comparisonQuery(request), enabled: !empty });
  const problem = findQueryError(query);
  const faults = {
    filter: findFaultAt(problem, "/filter"),
    by:
      problem instanceof ApiError
        ? problem.errors.find((one) => one.pointer.startsWith("/group_by"))?.message
        : undefined,
  };
  const change = (part: CompareChange) =>
    void navigate({
      to: "/p/$project/compare",
      params: { project },
      search: tidy({ ...search, ...part }) as CompareSearch,
      replace: true,
      resetScroll: false,
    });
  const crumbs = (
    <Link to="/p/$project/experiments" params={{ project }}>
      Experiments
    </Link>
  );
  return (
    <Page title="Compare" crumbs={crumbs}>
      <Panel>
        <Controls search={search} faults={faults} onChange={change} />
      </Panel>
      {empty ? (
        <Panel>
          <Nothing project={project} />
        </Panel>
      ) : problem !== null && query.isError ? (
        <Panel>
          {problem instanceof ApiError && problem.status === 422 ? (
            <EmptyState title="This cannot be compared">{problem.message}</EmptyState>
          ) : (
            <Failure error={problem} retry={() => void query.refetch()} />
          )}
        </Panel>
      ) : query.data === undefined ? (
        <Panel>
          <Skeleton height={200} />
        </Panel>
      ) : (
        <Comparison {...{ project, search, request, change }} result={query.data} />
      )}
    </Page>
  );
}

export interface PartProps {
  project: string;
  search: CompareSearch;
  request: ComparisonQuery;
  result: ComparisonResult;
  change(part: CompareChange): void;
}

function Comparison(props: PartProps) {
  const scheme = useScheme();
  const { result } = props;
  const members = useMemo(() => listMembers(result, scheme), [result, scheme]);
  return (
    <>
      {result.warnings.length > 0 && (
        <Banner tone="warn" title="Scores may differ for other reasons than the definitions">
          {result.warnings.map((warning) => (
            <p key={warning}>{warning}</p>
          ))}
        </Banner>
      )}
      <Scores {...props} members={members} />
      <Differences {...props} members={members} />
      <Curves {...props} members={members} />
      <Parameters {...props} members={members} />
      <CodePanel {...props} />
    </>
  );
}

function Nothing({ project }: { project: string }) {
  return (
    <EmptyState
      title="Nothing is chosen yet"
      command={'palestra compare --filter "env:CartPole-v1" --by experiment'}
      actions={
        <Button
          variant="default"
          renderRoot={(props) => (
            <Link to="/p/$project/experiments" params={{ project }} {...props} />
          )}
        >
          Choose experiments
        </Button>
      }
    >
      Select rows of the list of experiments and press “Compare”, or write a filter above. Up to 30
      runs, or groups of runs, are compared at once.
    </EmptyState>
  );
}
