import { useMemo } from "react";
import { COMPARISON_PATH } from "@/api/statisticsQueries";
import { formatScore, formatSpread, formatValue } from "@/lib/format";
import { Dot } from "@/ui/Dot";
import { Figure } from "@/ui/Figure";
import figure from "@/ui/Figure.module.css";
import classes from "./Compare.module.css";
import type { PartProps } from "./ComparePage";
import { listScores, type Member, scoreTable } from "./members";

/** The final scores of the members, with the difference to the best of each environment. */
export function Scores({ result, request, members }: PartProps & { members: readonly Member[] }) {
  const data = useMemo(() => scoreTable(result), [result]);
  const rows = useMemo(() => listScores(result), [result]);
  const best = new Map<string, number>();
  for (const { scores } of rows)
    if (scores !== null)
      best.set(
        scores.environment,
        Math.max(best.get(scores.environment) ?? Number.NEGATIVE_INFINITY, scores.mean),
      );
  return (
    <Figure
      table
      title="Scores"
      name="compared-scores"
      data={data}
      query={{ path: COMPARISON_PATH, body: request }}
      caption={[
        `Score of a run: ${result.method.score}, raw. Intervals of the IQM are 95 % bootstrap ` +
          "intervals over the runs of a group.",
        ...result.notes.filter((note) => !note.startsWith("Importance")),
      ]}
    >
      <table className={figure.grid} aria-label="Scores">
        <thead>
          <tr>
            <th scope="col">Run or group</th>
            <th scope="col">Environment</th>
            <th scope="col" data-number>
              n
            </th>
            <th scope="col" data-number>
              Mean
            </th>
            <th scope="col" data-number>
              Less the best
            </th>
            <th scope="col" data-number>
              IQM
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ index, environment, runs, scores }) => (
            <tr key={`${index} ${environment}`}>
              <th scope="row">
                <span className={classes.name}>
                  <Dot color={members[index]?.color ?? ""} />
                  {members[index]?.name}
                </span>
              </th>
              <td>{environment}</td>
              <td data-number>
                {scores?.n ?? 0}
                {(scores?.n ?? 0) < runs && <small> of {runs}</small>}
              </td>
              <td data-number>
                {scores === null ? (
                  <span className="faint">no score yet</span>
                ) : (
                  <>
                    {formatScore(scores.mean, scores.stdev)}
                    {scores.stdev !== null && <small> ± {formatSpread(scores.stdev)}</small>}
                  </>
                )}
              </td>
              <td data-number>
                {scores === null
                  ? "–"
                  : describeDifference(scores.mean - (best.get(scores.environment) ?? 0))}
              </td>
              <td data-number>
                {scores === null ? (
                  "–"
                ) : (
                  <>
                    {formatValue(scores.iqm.value)}
                    {scores.iqm.low !== null && (
                      <small>
                        {" "}
                        [{formatValue(scores.iqm.low)}, {formatValue(scores.iqm.high)}]
                      </small>
                    )}
                  </>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Figure>
  );
}

function describeDifference(difference: number): string {
  return difference === 0 ? "best" : formatValue(difference);
}
