/** Columns and lines of one panel of the board. */
import type { GridGroup } from "@/api/types";
import type { PlotBand, PlotData, PlotMark, PlotScale, PlotSeries } from "@/charts";
import { alpha } from "@/lib/color";
import { smooth } from "@/lib/movingAverage";
import type { Aggregate, Band } from "./boardSearch";
import { computeInnerRange } from "./panelRange";
import type { PanelCurves } from "./panelStore";

export interface PanelLook {
  colour(runId: string): string;
  label(runId: string): string;
  /** Whether a run's row is on the page: such a run lends its colour to its group. */
  isShown(runId: string): boolean;
  aggregate: Aggregate;
  band: Band;
  smoothing: number;
  scale: PlotScale;
  /** Whether the y axis leaves out the outermost values. */
  clip: boolean;
}

export interface PanelPlot {
  data: PlotData;
  points: number;
  /** Whether no line has a value. */
  empty: boolean;
  series: PlotSeries[];
  bands: PlotBand[];
  marks: PlotMark[];
  range: readonly [number, number] | null;
  /** Values that a logarithm cannot show. */
  omitted: number;
  note(index: number): string | null;
}

type Column = (number | null)[];
const GROUP = "group ";

/** The line of a group, named by the run that gives it its colour. */
export function nameGroupLine(group: GridGroup, isShown: (runId: string) => boolean): string {
  const { run_ids: runs = [] } = group;
  return `${GROUP}${runs.find(isShown) ?? runs[0] ?? ""}`;
}

/** The run that a line belongs to. */
export function readRunOfLine(id: string): string {
  return id.startsWith(GROUP) ? id.slice(GROUP.length) : id;
}

/** The line that stands for a run: its own, or that of its group. */
export function findLineOfRun(
  runId: string | null,
  curves: PanelCurves | null,
  isShown: (runId: string) => boolean,
): string | null {
  if (runId === null || curves === null) return null;
  if (curves.series.some((one) => one.run_id === runId)) return runId;
  const group = curves.groups.find((one) => one.run_ids?.includes(runId));
  return group ? nameGroupLine(group, isShown) : null;
}

export function buildPanelPlot(curves: PanelCurves, look: PanelLook): PanelPlot {
  const columns: Column[] = [];
  const series: PlotSeries[] = [];
  const bands: PlotBand[] = [];
  let omitted = 0;
  const add = (values: readonly (number | null)[], line: PlotSeries, counts?: number[]) => {
    const column = look.smoothing > 0 ? smooth(values, look.smoothing) : (values as Column);
    const drawn = look.scale === "log" ? dropNonPositive(column) : { column, dropped: 0 };
    if (!line.edge) omitted += drawn.dropped;
    columns.push(counts ? bridgeEmpty(drawn.column, counts) : drawn.column);
    series.push(line);
  };
  const grouped = curves.groups.length > 0;
  for (const group of curves.groups) {
    const color = look.colour(readRunOfLine(nameGroupLine(group, look.isShown)));
    const edges = buildEdges(group, look);
    if (edges === null) continue;
    const edge = { color, edge: true, silent: true, gaps: true };
    bands.push({ high: series.length, low: series.length + 1, fill: fade(color, 0.16) });
    add(edges.high, { label: "high", ...edge }, group.n);
    add(edges.low, { label: "low", ...edge }, group.n);
  }
  for (const one of curves.series) {
    const color = look.colour(one.run_id);
    const line = grouped
      ? { color: fade(color, 0.3), width: 1, silent: curves.series.length > 30 }
      : { color, width: 1.4 };
    add(one.mean, { id: one.run_id, label: look.label(one.run_id), ...line });
  }
  for (const group of curves.groups) {
    const id = nameGroupLine(group, look.isShown);
    const color = look.colour(readRunOfLine(id));
    add(group[look.aggregate] ?? [], { id, label: group.name, color, width: 2.4 });
  }
  const lines = columns.filter((_, i) => !series[i]?.edge);
  return {
    data: [curves.grid as number[], ...columns],
    points: curves.series.reduce((sum, one) => sum + one.points, 0),
    empty: lines.every((column) => column.every((y) => y === null || y === undefined)),
    series,
    bands,
    marks: findCountMarks(curves),
    range: look.clip ? computeInnerRange(lines) : null,
    omitted,
    note: (index) => describeCounts(curves.groups, index),
  };
}

/** The ends of a group's band; `null` where none is drawn. */
function buildEdges(group: GridGroup, { band }: PanelLook): { low: Column; high: Column } | null {
  const around = (spread: readonly (number | null)[], sign: number): Column =>
    group.mean.map((mean, i) => {
      const width = spread[i];
      return mean === null || width === null || width === undefined ? null : mean + sign * width;
    });
  if (band === "stdev" || band === "stderr") {
    const spread = band === "stdev" ? group.stdev : (group.stderr ?? []);
    return spread.length > 0 ? { low: around(spread, -1), high: around(spread, 1) } : null;
  }
  const ends = {
    none: [[], []],
    range: [group.min, group.max],
    interval: group.iqm_low?.length
      ? [group.iqm_low, group.iqm_high ?? []]
      : [group.low, group.high],
  }[band];
  const [low = [], high = []] = ends as [Column, Column];
  return low.length > 0 ? { low, high } : null;
}

/** A band is drawn across buckets without data, and not where the statistic does not exist. */
function bridgeEmpty(column: Column, counts: readonly number[]): Column {
  return column.map((y, i) => (counts[i] === 0 ? (undefined as unknown as null) : y));
}

function dropNonPositive(values: Column): { column: Column; dropped: number } {
  let dropped = 0;
  const column = values.map((y) => {
    if (y === null || y === undefined || y > 0) return y;
    dropped += 1;
    return null;
  });
  return { column, dropped };
}

/** Where the number of runs of the only group changes. */
function findCountMarks({ grid, groups }: PanelCurves): PlotMark[] {
  const [group] = groups;
  if (groups.length !== 1 || group === undefined) return [];
  const marks: PlotMark[] = [];
  let before: number | null = null;
  for (let i = 0; i < grid.length; i += 1) {
    const n = group.n[i] ?? 0;
    if (n === 0) continue;
    if (before !== null && (group.n[before] ?? 0) !== n)
      marks.push({ x: ((grid[before] ?? 0) + (grid[i] ?? 0)) / 2, label: `n = ${n}` });
    before = i;
  }
  return marks;
}

function describeCounts(groups: readonly GridGroup[], index: number): string | null {
  const counts = groups.map((one) => one.n[index] ?? 0);
  const carried = groups.reduce((sum, one) => sum + (one.carried[index] ?? 0), 0);
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  if (groups.length === 0 || most === 0) return null;
  const range = least === most ? `${most}` : `${least} to ${most}`;
  return `n = ${range}${carried > 0 ? `, ${carried} carried forward` : ""}`;
}

function fade(color: string, opacity: number): string {
  return /^#[0-9a-f]{6}$/i.test(color) ? alpha(color, opacity) : color;
}
