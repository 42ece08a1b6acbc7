import { lazy } from "react";

/** The chart; its code arrives with the first chart on a page. */
export const Plot = lazy(() => import("./Plot"));
export type { PlotBand, PlotData, PlotMark, PlotProps, PlotSeries, PlotSource } from "./types";
