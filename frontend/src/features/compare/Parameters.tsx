import { Select } from "@mantine/core";
import { useMemo } from "react";
import { COMPARISON_PATH } from "@/api/statisticsQueries";
import { ParallelFigure } from "@/charts/ParallelFigure";
import { ScatterFigure } from "@/charts/ScatterFigure";
import { formatValue } from "@/lib/format";
import { EmptyState } from "@/ui/EmptyState";
import { Figure } from "@/ui/Figure";
import figure from "@/ui/Figure.module.css";
import { Panel } from "@/ui/Page";
import type { PartProps } from "./ComparePage";
import { importanceTable, type Member, runTable } from "./members";
import { buildAxis, collapseSplits, describeSplit, rankPaths, restrict } from "./parameterAxes";

const MOST_AXES = 8;

/** What the scores vary with: importance, a parameter against the score, all of them at once. */
export function Parameters(props: PartProps & { members: readonly Member[] }) {
  const { result, search } = props;
  const environments = [...new Set(result.runs.map((run) => run.environment))];
  const environment = environments.find((one) => one === search.env) ?? environments[0] ?? "";
  // Scores of several environments have different scales, so a chart is of one.
  const shown = useMemo(() => restrict(result, environment), [result, environment]);
  const ranked = useMemo(() => rankPaths(result, environment), [result, environment]);
  if (result.parameters.length === 0)
    return (
      <Panel title="Hyperparameters">
        <EmptyState small title="No hyperparameter differs">
          Compare runs of several definitions to see what their scores vary with.
        </EmptyState>
      </Panel>
    );
  return (
    <>
      <Importance {...props} />
      <Scatter {...props} result={shown} paths={ranked} environments={environments} />
      <Parallel {...props} result={shown} paths={ranked.slice(0, MOST_AXES)} />
    </>
  );
}

function Importance({ result, request }: PartProps) {
  const data = useMemo(() => importanceTable(result), [result]);
  const notes = result.notes.filter((note) => /importance|hyperparameter/i.test(note));
  if (result.importance.length === 0)
    return (
      <Panel title="Importance of hyperparameters">
        <EmptyState small title="Too little is known for an importance">
          {notes.join(" ")}
        </EmptyState>
      </Panel>
    );
  return (
    <Figure
      table
      title="Importance of hyperparameters"
      name="importance"
      data={data}
      query={{ path: COMPARISON_PATH, body: request }}
      caption={[
        `${result.method.importance}; p-values by ${result.method.permutations} permutations of ` +
          `the scores, RNG seed ${result.method.rng_seed}. The file has each hyperparameter apart.`,
        ...notes,
      ]}
    >
      <table className={figure.grid} aria-label="Importance of hyperparameters">
        <thead>
          <tr>
            <th scope="col">Hyperparameter</th>
            <th scope="col">Environment</th>
            <th scope="col" data-number>
              Values
            </th>
            <th scope="col" data-number>
              Variance explained
            </th>
            <th scope="col" data-number>
              Rank correlation
            </th>
            <th scope="col" data-number>
              p
            </th>
            <th scope="col">Cannot be told apart from</th>
          </tr>
        </thead>
        <tbody>
          {result.importance.flatMap((one) =>
            collapseSplits(one.parameters).map((parameter) => (
              <tr key={`${one.environment} ${parameter.path}`}>
                <th scope="row">
                  <code>{parameter.path}</code>
                </th>
                <td>{one.environment}</td>
                <td data-number>{parameter.levels}</td>
                <td data-number>{formatValue(parameter.explained, 2)}</td>
                <td data-number>{formatValue(parameter.correlation, 2)}</td>
                <td data-number>{formatValue(parameter.p_value, 2)}</td>
                <td title={parameter.same_split.join(", ")}>
                  {parameter.same_split.length === 0 ? (
                    <span className="faint">none</span>
                  ) : (
                    describeSplit(parameter.same_split)
                  )}
                </td>
              </tr>
            )),
          )}
        </tbody>
      </table>
    </Figure>
  );
}

type ChartProps = PartProps & { members: readonly Member[]; paths: readonly string[] };

function Scatter(props: ChartProps & { environments: readonly string[] }) {
  const { result, request, search, change, members, paths, environments } = props;
  const path = paths.find((one) => one === search.parameter) ?? paths[0] ?? "";
  const axis = useMemo(() => buildAxis(result, path), [result, path]);
  const data = useMemo(() => runTable(result), [result]);
  const points = result.runs.flatMap((run, index) => {
    const x = axis.places[index] ?? null;
    const member = members[run.member];
    if (x === null || run.score === null || member === undefined) return [];
    const place = axis.categories?.[x] ?? formatValue(x);
    const title = `${member.name}, seed ${run.seed}: ${path} = ${place}, ${formatValue(run.score)}`;
    return [{ key: run.run_id, x, y: run.score, color: member.color, title }];
  });
  return (
    <Figure
      title="Score by hyperparameter"
      name="score-by-hyperparameter"
      data={data}
      query={{ path: COMPARISON_PATH, body: request }}
      caption={[
        `One point for each run of ${result.runs[0]?.environment} with a score, in the colour of ` +
          "its run or group.",
      ]}
      aside={
        <>
          {environments.length > 1 && (
            <Select
              aria-label="Environment"
              data={[...environments]}
              value={result.runs[0]?.environment ?? null}
              onChange={(env) => change({ env: env ?? undefined })}
              allowDeselect={false}
              w={170}
            />
          )}
          <Select
            aria-label="Hyperparameter"
            data={[...paths]}
            value={path}
            onChange={(one) => change({ parameter: one ?? undefined })}
            allowDeselect={false}
            searchable
            w={220}
          />
        </>
      }
    >
      <ScatterFigure
        label={`Scores of runs over ${path}`}
        points={points}
        xLabel={path}
        yLabel="score"
        log={axis.log}
        {...(axis.categories && { categories: axis.categories })}
      />
    </Figure>
  );
}

function Parallel({ result, request, members, paths }: ChartProps) {
  const axes = useMemo(() => paths.map((path) => buildAxis(result, path)), [result, paths]);
  const data = useMemo(() => runTable(result), [result]);
  const lines = result.runs.flatMap((run, index) => {
    const member = members[run.member];
    if (run.score === null || member === undefined) return [];
    return [
      {
        key: run.run_id,
        name: `${member.name}, seed ${run.seed}: ${formatValue(run.score)}`,
        color: member.color,
        values: [...axes.map((axis) => axis.places[index] ?? null), run.score],
      },
    ];
  });
  return (
    <Figure
      title="Parallel coordinates"
      name="parallel-coordinates"
      data={data}
      query={{ path: COMPARISON_PATH, body: request }}
      caption={[
        `One line for each run of ${result.runs[0]?.environment} with a score; the hyperparameters ` +
          "of the highest importance first, one of those that split the runs alike.",
      ]}
    >
      <ParallelFigure
        label="Differing hyperparameters and the score of each run"
        axes={[
          ...axes.map(({ path, categories, log }) => ({
            name: path,
            log,
            ...(categories && { categories }),
          })),
          { name: "score" },
        ]}
        lines={lines}
      />
    </Figure>
  );
}
