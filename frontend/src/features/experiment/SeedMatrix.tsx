import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { usePermission } from "@/api/access";
import { listMeasures, readScore } from "@/api/definition";
import type { ExperimentDetail, Run } from "@/api/types";
import { formatValue } from "@/lib/format";
import { computeProgress } from "@/lib/progress";
import { IconPlus } from "@/ui/icons";
import { StateBadge } from "@/ui/StateBadge";
import { MoreSeedsDialog } from "./MoreSeedsDialog";
import classes from "./SeedMatrix.module.css";
import { buildMatrixColumns, listMatrixStates } from "./seedMatrix";

interface SeedMatrixProps {
  experiment: ExperimentDetail;
  runs: readonly Run[];
}

/** Seeds against states: a cell opens its run, and a seed without a run is trained by a click. */
export function SeedMatrix({ experiment, runs }: SeedMatrixProps) {
  const [asked, setAsked] = useState<number | null>(null);
  const { reason } = usePermission("run.submit", experiment.project);
  const columns = useMemo(() => buildMatrixColumns(runs), [runs]);
  const states = useMemo(() => listMatrixStates(runs), [runs]);
  return (
    <div className={classes.frame}>
      <table className={classes.matrix} aria-label="States by seed">
        <thead>
          <tr>
            <th scope="col">State</th>
            {columns.map(({ seed, run }) => (
              <th key={run?.id ?? seed} scope="col" data-missing={run === null || undefined}>
                {seed}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {states.map((state) => (
            <tr key={state}>
              <th scope="row">
                <StateBadge state={state} />
              </th>
              {columns.map(({ seed, run }) => (
                <td key={run?.id ?? seed}>
                  {run?.state === state && <Cell experiment={experiment} run={run} />}
                </td>
              ))}
            </tr>
          ))}
          <tr>
            <th scope="row" className="faint">
              not trained
            </th>
            {columns.map(({ seed, run }) => (
              <td key={run?.id ?? seed}>
                {run === null && (
                  <button
                    type="button"
                    className={classes.missing}
                    aria-label={`Train seed ${seed}`}
                    aria-disabled={reason !== null}
                    title={reason ?? `Train seed ${seed}`}
                    onClick={() => reason === null && setAsked(seed)}
                  >
                    <IconPlus size={13} />
                  </button>
                )}
              </td>
            ))}
          </tr>
        </tbody>
      </table>
      {asked !== null && (
        <MoreSeedsDialog
          experiment={experiment}
          runs={runs}
          proposed={[asked]}
          onClose={() => setAsked(null)}
        />
      )}
    </div>
  );
}

function Cell({ experiment, run }: { experiment: ExperimentDetail; run: Run }) {
  const measures = listMeasures(experiment.definition);
  const score = run.latest_evaluation ? readScore(run.latest_evaluation, measures) : null;
  const { share, text } = computeProgress({
    state: run.state,
    cause: run.cause,
    fraction: run.progress.fraction,
  });
  const latest = score === null ? "" : `, latest evaluation ${formatValue(score)}`;
  const title = `Seed ${run.seed}: ${run.state}, ${text}${latest}`;
  return (
    <Link
      to="/p/$project/runs/$runId"
      params={{ project: run.project, runId: run.id }}
      className={classes.cell}
      data-state={run.state}
      title={title}
      aria-label={title}
    >
      <span style={{ height: `${100 * (share ?? 1)}%` }} />
    </Link>
  );
}
