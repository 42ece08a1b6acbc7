import { useEffect, useMemo, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { focusLine } from "./interaction";
import { buildOptions } from "./options";
import classes from "./Plot.module.css";
import type { PlotProps } from "./types";

/** A uPlot chart that redraws when its source changes, without rendering by React. */
export default function Plot(props: PlotProps) {
  const host = useRef<HTMLDivElement>(null);
  const shown = useRef<{ plot: uPlot; paint(): void } | null>(null);
  /** Width of the chart before; reading it while many charts are made costs a layout each. */
  const width = useRef(0);
  const latest = useRef(props);
  latest.current = props;
  const structure = useMemo(
    () =>
      JSON.stringify([
        props.series,
        props.bands,
        props.scheme,
        props.height,
        props.time,
        props.scale,
        props.sync,
        props.range !== undefined,
        props.yRange !== undefined,
        props.onFocus !== undefined,
      ]),
    [
      props.series,
      props.bands,
      props.scheme,
      props.height,
      props.time,
      props.scale,
      props.sync,
      props.range,
      props.yRange,
      props.onFocus,
    ],
  );

  // A change of the structure makes the chart again; everything else only redraws it.
  // biome-ignore lint/correctness/useExhaustiveDependencies: `structure` stands for the props
  useEffect(() => {
    const element = host.current;
    if (element === null) return;
    const { data, points } = latest.current.source.read();
    width.current ||= element.clientWidth;
    const options = buildOptions(latest, element, width.current);
    const plot = new uPlot(options, data as uPlot.AlignedData, element);
    element.dataset.points = String(points);
    let visible = true;
    let stale = false;
    const paint = () => {
      stale = !visible;
      const fresh = latest.current.source.read();
      element.dataset.points = String(fresh.points);
      if (visible) plot.setData(fresh.data as uPlot.AlignedData);
    };
    shown.current = { plot, paint };
    if (latest.current.focused) focusLine(plot, latest.current);
    const stop = props.source.watch(paint);
    const sizes = new ResizeObserver(() => {
      width.current = element.clientWidth;
      const size = { width: width.current, height: latest.current.height };
      // uPlot draws again even if the size is the same, as it is when the observer begins.
      if (size.width !== plot.width || size.height !== plot.height) plot.setSize(size);
    });
    sizes.observe(element);
    const sight = new IntersectionObserver(([entry]) => {
      visible = entry?.isIntersecting ?? true;
      if (visible && stale) paint();
    });
    sight.observe(element);
    return () => {
      shown.current = null;
      stop();
      sizes.disconnect();
      sight.disconnect();
      plot.destroy();
    };
  }, [structure, props.source]);

  // The visible range is read by the scale when the data is set.
  const ranged = useRef(props.range);
  useEffect(() => {
    const before = ranged.current;
    ranged.current = props.range;
    const isSame = before?.start === props.range?.start && before?.end === props.range?.end;
    if (!isSame) shown.current?.paint();
  }, [props.range]);

  const focused = useRef(props.focused ?? null);
  useEffect(() => {
    const next = props.focused ?? null;
    if (focused.current !== next && shown.current) focusLine(shown.current.plot, latest.current);
    focused.current = next;
  }, [props.focused]);

  return (
    <div
      ref={host}
      className={classes.plot}
      style={{ height: props.height }}
      data-testid={props.testId}
      role="img"
      aria-label={props.label}
    />
  );
}
