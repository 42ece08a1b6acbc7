import { ActionIcon, Skeleton } from "@mantine/core";
import { memo, Suspense, useEffect, useRef } from "react";
import { Plot } from "@/charts";
import { chooseXFormat, formatCount, formatValue } from "@/lib/format";
import { Failure } from "@/ui/Failure";
import { IconArrowsMaximize, IconArrowsMinimize, IconPin, IconPinnedOff } from "@/ui/icons";
import { useScheme } from "@/ui/scheme";
import classes from "./Board.module.css";
import type { BoardAxis } from "./boardSearch";
import { findLineOfRun, type PanelLook } from "./panelPlot";
import type { PanelStore } from "./panelStore";
import { usePanelPlot } from "./usePanelPlot";

/** Panels this near to the visible part of the page are loaded. */
const AHEAD = "200px";
const HEIGHT = 190;
const LARGE_HEIGHT = 460;
const NO_BANDS: never[] = [];

interface BoardPanelProps {
  name: string;
  store: PanelStore;
  look: PanelLook;
  axis: BoardAxis;
  start: number | undefined;
  end: number | undefined;
  pinned: boolean;
  /** Whether it has the width of the board. */
  isLarge: boolean;
  /** Run whose line stands out. */
  hovered: string | null;
  /** Line under the cursor, which goes before the line of `hovered`. */
  line: string | null;
  onLine(line: string | null): void;
  onPin(name: string): void;
  onLarge(name: string | null): void;
  onZoom(range: { start: number; end: number } | null): void;
}

/** The curves of one series, of all runs and groups that are shown. */
export const BoardPanel = memo(function BoardPanel(props: BoardPanelProps) {
  const { name, store, look, axis, pinned, isLarge } = props;
  const height = isLarge ? LARGE_HEIGHT : HEIGHT;
  const scheme = useScheme();
  const figure = useRef<HTMLElement>(null);
  const { state, plot, source } = usePanelPlot(store, name, look);
  useEffect(() => {
    const element = figure.current;
    if (element === null) return;
    const sight = new IntersectionObserver(
      ([entry]) => store.setVisible(name, entry?.isIntersecting ?? false),
      { rootMargin: AHEAD },
    );
    sight.observe(element);
    return () => {
      sight.disconnect();
      store.setVisible(name, false);
    };
  }, [store, name]);
  useEffect(() => {
    if (isLarge) figure.current?.scrollIntoView({ block: "center" });
  }, [isLarge]);
  const focused = props.line ?? findLineOfRun(props.hovered, state.curves, look.isShown);
  return (
    <figure
      ref={figure}
      className={classes.panel}
      data-stale={state.loading || undefined}
      data-large={isLarge || undefined}
    >
      <figcaption>
        <span className="clip" title={name}>
          {name}
        </span>
        {plot !== null && plot.omitted > 0 && (
          <span className="faint" title="A logarithm shows values above 0 only">
            {formatCount(plot.omitted)} not above 0
          </span>
        )}
        <ActionIcon
          size={22}
          className={`${classes.tool} ${classes.enlarge}`}
          data-active={isLarge || undefined}
          aria-label={isLarge ? `Shrink ${name}` : `Enlarge ${name}`}
          aria-pressed={isLarge}
          onClick={() => props.onLarge(isLarge ? null : name)}
        >
          {isLarge ? <IconArrowsMinimize size={14} /> : <IconArrowsMaximize size={14} />}
        </ActionIcon>
        <ActionIcon
          size={22}
          className={classes.tool ?? ""}
          data-active={pinned || undefined}
          aria-label={pinned ? `Unpin ${name}` : `Pin ${name}`}
          aria-pressed={pinned}
          onClick={() => props.onPin(name)}
        >
          {pinned ? <IconPinnedOff size={14} /> : <IconPin size={14} />}
        </ActionIcon>
      </figcaption>
      {state.error !== null && plot === null ? (
        <Failure small error={state.error} retry={() => store.retry(name)} />
      ) : state.curves === null ? (
        <Skeleton height={height} />
      ) : plot === null || plot.empty ? (
        <p className={classes.nothing} style={{ height }}>
          No point of these runs in this range
        </p>
      ) : (
        <Suspense fallback={<Skeleton height={height} />}>
          <Plot
            label={`${name} of the runs shown`}
            testId={`board-${name}`}
            height={height}
            source={source}
            series={plot.series}
            bands={plot.bands.length > 0 ? plot.bands : NO_BANDS}
            marks={plot.marks}
            note={plot.note}
            scheme={scheme}
            scale={look.scale}
            yRange={() => plot.range}
            sync="board"
            xFormat={chooseXFormat(axis)}
            yFormat={(y) => formatValue(y, 4)}
            onZoom={props.onZoom}
            range={{ start: props.start, end: props.end }}
            focused={focused}
            onFocus={props.onLine}
          />
        </Suspense>
      )}
      {state.error !== null && plot !== null && (
        <p className={classes.stale} role="status">
          {state.error.message}
        </p>
      )}
    </figure>
  );
});
