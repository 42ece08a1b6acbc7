import { Skeleton } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { useCallback, useMemo, useRef, useState } from "react";
import type { Run } from "@/api/types";
import { formatCount } from "@/lib/format";
import { matcher, type Section, sections } from "@/lib/seriesSections";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { Panel } from "@/ui/Page";
import { SectionTitle } from "@/ui/SectionTitle";
import classes from "./Board.module.css";
import { BoardBar } from "./BoardBar";
import { BoardPanel } from "./BoardPanel";
import { hasInterval } from "./boardQuery";
import type { BoardSearch, ChangeBoard } from "./boardSearch";
import { type PanelLook, readRunOfLine } from "./panelPlot";
import { useBoardSearch } from "./useBoardSearch";
import { useBoardSeries } from "./useBoardSeries";
import { useBoardView } from "./useBoardView";
import { useLargePanel } from "./useLargePanel";

const PINNED = "pinned";
/** Number of runs whose curves are drawn: the first ones of the table. */
const MOST_DRAWN = 200;

interface BoardProps {
  /** The runs whose curves are drawn, in order. */
  runs: readonly Run[];
  /** Members of the definition: runs with equal values are one group. */
  groupBy: readonly string[];
  /** Filter of the page: groups are over all runs that it finds. */
  filter: string;
  /** Slug of the project; `null` for all projects. */
  project: string | null;
  colour(runId: string): string;
  hovered: string | null;
  onHover(runId: string | null): void;
}

/** A chart for each series of some runs, in sections, under one bar of controls. */
export function Board(props: BoardProps) {
  const { groupBy, hovered, onHover } = props;
  const runs = useMemo(() => props.runs.slice(0, MOST_DRAWN), [props.runs]);
  const [search, change] = useBoardSearch();
  const { ref, width } = useElementSize();
  const series = useBoardSeries(runs, props.filter, props.project);
  const shown = useSections(series.names, search);
  const [large, setLarge] = useLargePanel(listPanels(shown, search), search.large);
  const isLarge = large !== null;
  const store = useBoardView({ ...props, runs, search, series, width, isLarge });
  const look = useLook({ ...props, runs }, search);
  const [line, setLine] = useState<string | null>(null);
  const hover = useRef(onHover);
  hover.current = onHover;
  const onLine = useCallback((id: string | null) => {
    setLine(id);
    hover.current(id === null ? null : readRunOfLine(id));
  }, []);
  const zoom = useCallback(
    (range: { start: number; end: number } | null) =>
      change({ start: round(range?.start), end: round(range?.end) }),
    [change],
  );
  const pin = usePins(search, change);
  // A row that is hovered meanwhile goes before the line that the cursor has left.
  const current = line !== null && readRunOfLine(line) === hovered ? line : null;
  return (
    <div className={classes.board} ref={ref}>
      <BoardBar search={search} change={change} grouped={groupBy.length > 0} />
      {props.runs.length > runs.length && (
        <p className={classes.remark}>
          Curves of the first {runs.length} of {formatCount(props.runs.length)} runs
        </p>
      )}
      {series.searched !== null && (
        <p className={classes.remark} role="note">
          The panels are the series of the newest {formatCount(series.searched)} runs that the
          filter finds; older ones may have others. A narrower filter shows them.
        </p>
      )}
      {shown.map((section) => (
        <BoardSection key={section.prefix} section={section} search={search} change={change}>
          {section.names.map((name) => (
            <BoardPanel
              key={name}
              name={name}
              store={store}
              look={look}
              axis={search.x ?? "env_step"}
              start={search.start}
              end={search.end}
              pinned={search.pins?.includes(name) ?? false}
              isLarge={large === name}
              hovered={hovered}
              line={current}
              onLine={onLine}
              onPin={pin}
              onLarge={setLarge}
              onZoom={zoom}
            />
          ))}
        </BoardSection>
      ))}
      {shown.length === 0 && <Nothing runs={runs} series={series} filtered={!!search.panels} />}
    </div>
  );
}

function useLook({ runs, groupBy, colour }: BoardProps, search: BoardSearch): PanelLook {
  const { aggregate = "mean", band = "stderr", smooth = 0, scale = "linear", outliers } = search;
  // Rows are new objects after each event of the list; lines depend on these members only.
  const key = runs.map((run) => `${run.id} ${run.experiment_id} ${run.seed}`).join("\n");
  // biome-ignore lint/correctness/useExhaustiveDependencies: `key` stands for the runs
  const names = useMemo(() => nameRuns(runs), [key]);
  const colours = runs.map((run) => colour(run.id)).join();
  const latest = useRef(colour);
  latest.current = colour;
  // biome-ignore lint/correctness/useExhaustiveDependencies: new colours are drawn
  return useMemo(
    () => ({
      colour: (id) => latest.current(id),
      label: (id) => names.get(id) ?? id,
      isShown: (id) => names.has(id),
      aggregate,
      band: band === "interval" && !hasInterval(aggregate) ? "none" : band,
      smoothing: smooth,
      scale,
      clip: outliers === "clip",
    }),
    [names, colours, aggregate, band, smooth, scale, outliers, groupBy.length],
  );
}

/** Names of runs in tooltips: the experiment where there are several, and the seed. */
function nameRuns(runs: readonly Run[]): Map<string, string> {
  const several = new Set(runs.map((run) => run.experiment_id)).size > 1;
  return new Map(
    runs.map((run) => {
      const replicate = run.replicate > 0 ? ` #${run.replicate}` : "";
      const seed = `seed ${run.seed}${replicate}`;
      return [run.id, several ? `${run.experiment_id} ${seed}` : seed];
    }),
  );
}

function usePins(search: BoardSearch, change: ChangeBoard): (name: string) => void {
  const pins = useRef(search.pins ?? []);
  pins.current = search.pins ?? [];
  return useCallback(
    (name) => {
      const others = pins.current.filter((one) => one !== name);
      const next = others.length < pins.current.length ? others : [...others, name];
      change({ pins: next.length > 0 ? next : undefined });
    },
    [change],
  );
}

function useSections(names: readonly string[], { panels, pins }: BoardSearch): Section[] {
  return useMemo(() => {
    const matches = matcher(panels);
    const pinned = (pins ?? []).filter((name) => names.includes(name) && matches(name));
    const others = names.filter((name) => !pinned.includes(name));
    const first = pinned.length > 0 ? [{ prefix: PINNED, names: pinned }] : [];
    return [...first, ...sections(others, panels)];
  }, [names, panels, pins]);
}

/** The panels of the sections that are not folded. */
function listPanels(shown: readonly Section[], { folded }: BoardSearch): string[] {
  return shown.flatMap(({ prefix, names }) => (folded?.includes(prefix) ? [] : names));
}

interface BoardSectionProps {
  section: Section;
  search: BoardSearch;
  change: ChangeBoard;
  children: React.ReactNode;
}

function BoardSection({ section, search, change, children }: BoardSectionProps) {
  const { prefix, names } = section;
  const open = !search.folded?.includes(prefix);
  const toggle = () => {
    const others = (search.folded ?? []).filter((one) => one !== prefix);
    const folded = open ? [...others, prefix] : others;
    change({ folded: folded.length > 0 ? folded : undefined });
  };
  return (
    <section className={classes.section}>
      <SectionTitle
        title={prefix.replaceAll("_", " ")}
        count={names.length}
        isOpen={open}
        onToggle={toggle}
      />
      {open && <div className={classes.grid}>{children}</div>}
    </section>
  );
}

interface NothingProps {
  runs: readonly Run[];
  series: ReturnType<typeof useBoardSeries>;
  filtered: boolean;
}

function Nothing({ runs, series, filtered }: NothingProps) {
  if (runs.length > 0 && series.loading) return <Skeleton height={240} radius={10} />;
  return (
    <Panel>
      {series.error !== null ? (
        <Failure error={series.error} />
      ) : runs.length === 0 ? (
        <EmptyState title="No run to draw">
          Choose runs in the table, or widen the filter.
        </EmptyState>
      ) : filtered && series.names.length > 0 ? (
        <EmptyState title="No panel matches">
          The search is a part of a name or a regular expression, for example loss|return.
        </EmptyState>
      ) : (
        <EmptyState title="No point yet">
          The curves begin with the first finished episode of a run.
        </EmptyState>
      )}
    </Panel>
  );
}

function round(x: number | undefined): number | undefined {
  return x === undefined ? undefined : Math.round(x);
}
