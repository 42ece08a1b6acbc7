import { Skeleton } from "@mantine/core";
import type { ReactNode } from "react";
import { Failure } from "./Failure";
import classes from "./ListFrame.module.css";

interface ListFrameProps {
  query: { isPending: boolean; data: unknown; refetch(): unknown };
  problem: { message: string } | null;
  children: ReactNode;
}

/** A list while it loads, or why it could not be loaded. */
export function ListFrame({ query, problem, children }: ListFrameProps) {
  if (problem !== null && query.data === undefined)
    return <Failure error={problem} retry={() => void query.refetch()} />;
  if (query.isPending)
    return (
      <div className={classes.loading} aria-busy="true">
        <Skeleton height={14} width="80%" />
        <Skeleton height={14} width="66%" />
        <Skeleton height={14} width="72%" />
      </div>
    );
  return children;
}
