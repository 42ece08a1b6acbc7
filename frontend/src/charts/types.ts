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

export interface PlotSeries {
  label: string;
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
  log?: boolean;
  marks?: readonly PlotMark[];
  /** A line below the tooltip's heading about the point at this index. */
  note?: (index: number) => string | null;
}
