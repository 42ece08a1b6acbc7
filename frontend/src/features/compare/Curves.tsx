import { Select, Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { ApiError } from "@/api/client";
import { seriesNamesQuery, seriesQuery } from "@/api/queries";
import { SERIES_PATH } from "@/api/statisticsQueries";
import { LineFigure } from "@/charts/LineFigure";
import { AXIS_LABELS } from "@/lib/axes";
import { chooseXFormat } from "@/lib/format";
import { findQueryError } from "@/lib/outage";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { Figure } from "@/ui/Figure";
import { Panel } from "@/ui/Page";
import type { PartProps } from "./ComparePage";
import { buildLines, curveTable, dropEmpty, type Member } from "./members";
import { AXES, buildCurvesQuery, type CompareSearch } from "./search";

const COMPUTED = ["evaluation/mean", "evaluation/median", "episode/return", "episode/length"];

/** The curves of all members over one another; that of a group is its mean with an interval. */
export function Curves(props: PartProps & { members: readonly Member[] }) {
  const { result, search, change, members } = props;
  const body = buildCurvesQuery(result, search);
  const query = useQuery(seriesQuery(body));
  const problem = findQueryError(query);
  const names = useQuery(seriesNamesQuery(result.runs[0]?.run_id ?? "")).data;
  const series = search.series ?? "evaluation/mean";
  const axis = search.x ?? "env_step";
  const shown = useMemo(
    () => (query.data ? dropEmpty(query.data.grid, buildLines(result, query.data, members)) : null),
    [query.data, result, members],
  );
  const data = useMemo(
    () => curveTable(shown?.grid ?? [], shown?.lines ?? [], axis),
    [shown, axis],
  );
  const choices = (
    <>
      <Select
        aria-label="Series"
        data={[...new Set([...COMPUTED, ...(names ?? []).map((one) => one.name), series])]}
        value={series}
        onChange={(name) =>
          change({ series: name === "evaluation/mean" ? undefined : (name ?? undefined) })
        }
        allowDeselect={false}
        searchable
        w={210}
      />
      <Select
        aria-label="X axis"
        data={AXES.map((value) => ({ value, label: AXIS_LABELS[value] }))}
        value={axis}
        onChange={(x) => change({ x: x === "env_step" ? undefined : (x as CompareSearch["x"]) })}
        allowDeselect={false}
        w={130}
      />
    </>
  );
  if (problem !== null && query.isError)
    return (
      <Panel title="Curves" aside={choices}>
        <Failure small error={problem as ApiError} retry={() => void query.refetch()} />
      </Panel>
    );
  if (shown === null)
    return (
      <Panel title="Curves" aside={choices}>
        <Skeleton height={300} />
      </Panel>
    );
  if (shown.lines.length === 0)
    return (
      <Panel title="Curves" aside={choices}>
        <EmptyState small title={`No run has ${series} yet`}>
          Choose another series, or wait for the first point.
        </EmptyState>
      </Panel>
    );
  return (
    <Figure
      title={`Curves of ${series}`}
      name={`curves-${series.replaceAll("/", "-")}`}
      data={data}
      query={{ path: SERIES_PATH, body }}
      aside={choices}
      caption={[
        `Means of the buckets of one grid${
          result.members.some((member) => member.run_ids.length > 1)
            ? "; of groups the mean over their runs, with a 95 % bootstrap interval from 3 runs on"
            : ""
        }.`,
      ]}
    >
      <LineFigure
        label={`${series} of each member`}
        x={shown.grid}
        lines={shown.lines}
        xLabel={AXIS_LABELS[axis]}
        xFormat={chooseXFormat(axis)}
        yLabel={series}
      />
    </Figure>
  );
}
