/**
 * The columns of a chart over one x. `null` is an explicit gap; `undefined` is an x that the column
 * does not cover.
 */
export type PlotData = [x: number[], ...columns: (number | null | undefined)[][]];

/** A place on x that is marked from top to bottom. */
export interface PlotMark {
  x: number;
  label: string;
}

/** How values become heights. A symmetric logarithm is linear around 0 and has negative values. */
export type PlotScale = "linear" | "log" | "symlog";

export interface PlotSeries {
  label: string;
  /** Names the line to `onFocus` and `focused`; several lines may share it. */
  id?: string;
  color: string;
  width?: number;
  dash?: number[];
  /** Drawn without a line: one edge of a band. */
  edge?: boolean;
  /** Left out of the tooltip. */
  silent?: boolean;
  /** Dots at the points. */
  dots?: boolean;
  /** A `null` breaks the line; without it the line goes on to the next point. */
  gaps?: boolean;
}

export interface PlotBand {
  /** Positions in `series` of the upper and the lower edge. */
  high: number;
  low: number;
  fill: string;
}

export interface PlotSource {
  read(): { data: PlotData; points: number };
  /** Calls back when there is something new to draw. */
  watch(paint: () => void): () => void;
}

export interface PlotProps {
  label: string;
  testId: string;
  height: number;
  source: PlotSource;
  series: readonly PlotSeries[];
  bands?: readonly PlotBand[];
  scheme: "light" | "dark";
  xFormat(x: number): string;
  yFormat?: (y: number) => string;
  time?: boolean;
  /** Charts of one name share the cursor. */
  sync?: string;
  onZoom?: (range: { start: number; end: number } | null) => void;
  /** Visible range of x, where the page fixes it. */
  range?: { start: number | undefined; end: number | undefined };
  scale?: PlotScale;
  /** The visible range of y; `null` shows all values. */
  yRange?(): readonly [number, number] | null;
  /** The line that stands out, while the others are faint. */
  focused?: string | null;
  /** Called with the line under the cursor. */
  onFocus?(id: string | null): void;
  /** Called with the index of the point that was clicked. */
  onPick?(index: number): void;
  marks?: readonly PlotMark[];
  /** A line below the tooltip's heading about the point at this index. */
  note?: (index: number) => string | null;
}
