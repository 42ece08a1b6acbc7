import { useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { compareRuns, refuseComparison } from "@/lib/compare";
import { registerShortcuts } from "@/lib/shortcuts";
import { CompareLink } from "@/ui/CompareLink";

interface CompareSelectedProps {
  project: string;
  /** IDs of the selected runs that are loaded. */
  runs: readonly string[];
  /** Number of runs that are meant, also those that are not loaded. */
  count: number;
}

/** Leads to the comparison of the selected runs, by a button and the key `c`. */
export function CompareSelected({ project, runs, count }: CompareSelectedProps) {
  const navigate = useNavigate();
  const reason = refuseComparison(count, "runs");
  const ids = runs.join();
  useEffect(() => {
    if (reason !== null) return;
    const search = compareRuns(ids.split(","));
    const run = () => void navigate({ to: "/p/$project/compare", params: { project }, search });
    return registerShortcuts([{ keys: "c", what: "Compare the selected runs", run }]);
  }, [navigate, project, ids, reason]);
  return (
    <CompareLink project={project} search={compareRuns(runs)} reason={reason} size="compact-xs" />
  );
}
