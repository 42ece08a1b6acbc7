import { ActionIcon, Skeleton } from "@mantine/core";
import { Suspense, useEffect, useMemo, useRef } from "react";
import { Plot, type PlotBand, type PlotData, type PlotSeries, type PlotSource } from "@/charts";
import { alpha } from "@/lib/color";
import { chooseXFormat, formatValue } from "@/lib/format";
import { smooth } from "@/lib/movingAverage";
import type { View } from "@/live/curve";
import type { RunCurves } from "@/live/curves";
import { IconArrowsMaximize, IconArrowsMinimize } from "@/ui/icons";
import { useScheme } from "@/ui/scheme";
import classes from "./CurvesTab.module.css";

interface CurvePanelProps {
  curves: RunCurves;
  name: string;
  color: string;
  view: View;
  smoothing: number;
  focused: boolean;
  onFocus(): void;
  onZoom(range: { start: number; end: number } | null): void;
}

/** One live curve. React renders the panel once; points are drawn from the ring buffer. */
export function CurvePanel({
  curves,
  name,
  color,
  view,
  smoothing,
  focused,
  onFocus,
  onZoom,
}: CurvePanelProps) {
  const scheme = useScheme();
  const last = useRef<HTMLSpanElement>(null);
  const figure = useRef<HTMLElement>(null);
  useEffect(() => {
    if (focused) figure.current?.scrollIntoView({ block: "nearest" });
  }, [focused]);
  const source = useMemo<PlotSource>(
    () => ({
      read: () => {
        if (last.current) last.current.textContent = latestText(curves, name);
        return columns(curves, name, view, smoothing);
      },
      watch: (paint) => curves.watch(name, paint),
    }),
    [curves, name, view, smoothing],
  );
  const { series, bands } = useMemo(
    () => styles(name, color, smoothing > 0, view.superseded),
    [name, color, smoothing, view.superseded],
  );
  const label = name.slice(name.indexOf("/") + 1);
  return (
    <figure ref={figure} className={`${classes.panel} ${focused ? classes.focused : ""}`}>
      <figcaption>
        <span className="clip" title={name}>
          {label}
        </span>
        <span ref={last} className={classes.last} />
        <ActionIcon
          size={22}
          aria-label={focused ? `Shrink ${name}` : `Enlarge ${name}`}
          onClick={onFocus}
        >
          {focused ? <IconArrowsMinimize size={13} /> : <IconArrowsMaximize size={13} />}
        </ActionIcon>
      </figcaption>
      <Suspense fallback={<Skeleton height={170} />}>
        <Plot
          label={`${name} over ${view.axis}`}
          testId={`curve-${name}`}
          height={focused ? 380 : 172}
          source={source}
          series={series}
          bands={bands}
          scheme={scheme}
          sync="run"
          xFormat={chooseXFormat(view.axis)}
          onZoom={onZoom}
          range={{ start: view.start, end: view.end }}
        />
      </Suspense>
    </figure>
  );
}

function columns(
  curves: RunCurves,
  name: string,
  view: View,
  smoothing: number,
): { data: PlotData; points: number } {
  const { x, y, low, high, superseded, points } = curves.curve(name, view);
  const data: PlotData = [x, high, low];
  if (view.superseded) data.push(superseded);
  data.push(y);
  if (smoothing > 0) data.push(smooth(y, smoothing));
  return { data, points };
}

function styles(
  name: string,
  color: string,
  smoothed: boolean,
  superseded: boolean,
): { series: PlotSeries[]; bands: PlotBand[] } {
  const series: PlotSeries[] = [
    { label: "high", color, edge: true },
    { label: "low", color, edge: true },
  ];
  if (superseded)
    series.push({ label: "superseded", color: alpha(color, 0.55), width: 1.2, dash: [4, 4] });
  series.push({ label: name, color: smoothed ? alpha(color, 0.3) : color, width: 1.4 });
  if (smoothed) series.push({ label: `${name} (smoothed)`, color, width: 1.8 });
  return { series, bands: [{ high: 0, low: 1, fill: alpha(color, 0.16) }] };
}

/** The newest measured value, independent of smoothing and zoom. */
function latestText(curves: RunCurves, name: string): string {
  const latest = curves.latest.of(name);
  return latest === null ? "" : formatValue(latest);
}
