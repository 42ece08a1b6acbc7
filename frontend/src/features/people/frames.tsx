import { Skeleton } from "@mantine/core";
import type { ReactNode } from "react";
import { usePermission } from "@/api/access";
import type { ApiError } from "@/api/client";
import { problemOf } from "@/lib/outage";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { Panel } from "@/ui/Page";
import classes from "./People.module.css";

/** The content for administrators of the server; others are told why they do not see it. */
export function ManagersOnly({ children }: { children: ReactNode }) {
  const right = usePermission("server.users");
  if (right.allowed) return children;
  return (
    <Panel>
      <EmptyState title="You may not manage people">{right.reason}</EmptyState>
    </Panel>
  );
}

interface ShownQuery {
  data: unknown;
  isPending: boolean;
  error: Error | null;
  failureReason: Error | null;
  refetch(): unknown;
}

/** What a query has read; before that its failure, or a placeholder. */
export function Shown({ query, children }: { query: ShownQuery; children: ReactNode }) {
  const problem = problemOf(query);
  if (problem !== null && query.data === undefined)
    return <Failure error={problem as ApiError} retry={() => void query.refetch()} />;
  if (query.isPending) {
    return (
      <div className={classes.loading} aria-busy="true">
        <Skeleton height={14} width="82%" />
        <Skeleton height={14} width="70%" />
        <Skeleton height={14} width="76%" />
      </div>
    );
  }
  return children;
}
