import { lazy } from "react";

/** The chart, whose code is loaded with the first chart of a page. */
export const Plot = lazy(() => import("./Plot"));
export type {
  PlotBand,
  PlotData,
  PlotMark,
  PlotProps,
  PlotScale,
  PlotSeries,
  PlotSource,
} from "./types";
