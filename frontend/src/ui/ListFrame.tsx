import { Skeleton } from "@mantine/core";
import type { ReactNode } from "react";
import { findQueryError } from "@/lib/outage";
import { Failure } from "./Failure";
import classes from "./ListFrame.module.css";

/** The parts of a query that show whether it has loaded. */
export interface LoadedQuery {
  isPending: boolean;
  data: unknown;
  error: Error | null;
  failureReason: Error | null;
  refetch(): unknown;
}

interface ListFrameProps {
  query: LoadedQuery;
  /** Lines of the placeholder, at most three. */
  lines?: number;
  children: ReactNode;
}

const WIDTHS = ["80%", "66%", "72%"];

/** Shows the result of a query, or a placeholder until it is loaded, or its error. */
export function ListFrame({ query, lines = WIDTHS.length, children }: ListFrameProps) {
  const problem = findQueryError(query);
  if (problem !== null && query.data === undefined)
    return <Failure error={problem} retry={() => void query.refetch()} />;
  if (query.isPending)
    return (
      <div className={classes.loading} aria-busy="true">
        {WIDTHS.slice(0, lines).map((width) => (
          <Skeleton key={width} height={14} width={width} />
        ))}
      </div>
    );
  return children;
}
