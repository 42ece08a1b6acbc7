import { SegmentedControl, Skeleton, Switch } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useRef, useState, useSyncExternalStore } from "react";
import { listMeasures, scoresDrawn } from "@/api/definition";
import { evaluationsQuery } from "@/api/queries";
import { selectTrainingAttempts } from "@/api/schedules";
import type { RunDetail } from "@/api/types";
import { AXIS_LABELS } from "@/lib/axes";
import { sections } from "@/lib/seriesSections";
import type { View } from "@/live/curve";
import type { RunCurvesState } from "@/live/useRunCurves";
import { ResetZoom, Smoothing } from "@/ui/CurveControls";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { Panel } from "@/ui/Page";
import { SearchInput } from "@/ui/SearchInput";
import { SectionTitle } from "@/ui/SectionTitle";
import { CurvePanel } from "./CurvePanel";
import classes from "./CurvesTab.module.css";
import { EvaluationChart } from "./EvaluationChart";
import { listChartedSources, RETURN } from "./evaluationCurves";
import { AXES, type ChangeSearch, type RunSearch } from "./search";
import { EVALUATION_SERIES } from "./seriesGroups";

interface CurvesTabProps {
  run: RunDetail;
  state: RunCurvesState;
  color: string;
  search: RunSearch;
  change: ChangeSearch;
  /** Wall time of the run's first point, for the relative axis. */
  origin: number | undefined;
}

export function CurvesTab({ run, state, color, search, change, origin }: CurvesTabProps) {
  const { curves } = state;
  const names = useSyncExternalStore(curves.subscribe, curves.names);
  const grouped = useMemo(() => sections(names, search.q), [names, search.q]);
  const { x, start, end, superseded } = search;
  const { counter } = listMeasures(run.definition);
  const view = useMemo<View>(
    () => ({ axis: x ?? counter, superseded: superseded ?? false, start, end, origin }),
    [x, counter, start, end, superseded, origin],
  );
  const evaluations = useQuery(evaluationsQuery(run.id));
  const charted = useMemo(
    () => listChartedSources(evaluations.data ?? [], search.q),
    [evaluations.data, search.q],
  );
  const zoom = (range: { start: number; end: number } | null) =>
    change({ start: range?.start, end: range?.end });
  if (state.error && names.length === 0) {
    return (
      <Panel>
        <Failure error={state.error} retry={state.retry} />
      </Panel>
    );
  }
  return (
    <div className="stack">
      <Toolbar run={run} search={search} change={change} />
      {state.loading && names.length === 0 ? (
        <Skeleton height={360} radius={10} />
      ) : grouped.length === 0 && charted.length === 0 ? (
        <Panel>
          <NoCurves run={run} filtered={names.length > 0} />
        </Panel>
      ) : (
        <div className={classes.sections}>
          {charted.map(({ of, curves: shown }) => (
            <Section
              key={of}
              title={EVALUATION_SERIES[of].replaceAll("_", " ")}
              count={shown.length}
              wide={shown.includes(RETURN)}
            >
              {shown.map((curve) => (
                <EvaluationChart
                  key={curve}
                  evaluations={evaluations.data ?? []}
                  of={of}
                  scoresDrawn={scoresDrawn(run.definition)}
                  curve={curve}
                  color={color}
                  view={view}
                  onZoom={zoom}
                  onOpen={(evaluation) => change({ evaluation })}
                />
              ))}
            </Section>
          ))}
          {grouped.map((section) => (
            <Section
              key={section.prefix}
              title={section.prefix}
              count={section.names.length}
              wide={section.names.includes(search.focus ?? "")}
            >
              {section.names.map((name) => (
                <CurvePanel
                  key={name}
                  curves={curves}
                  name={name}
                  color={color}
                  view={view}
                  smoothing={search.smooth ?? 0}
                  focused={search.focus === name}
                  onFocus={() => change({ focus: search.focus === name ? undefined : name })}
                  onZoom={zoom}
                />
              ))}
            </Section>
          ))}
        </div>
      )}
    </div>
  );
}

interface SectionProps {
  title: string;
  count: number;
  wide?: boolean;
  children: React.ReactNode;
}

function Section({ title, count, wide = false, children }: SectionProps) {
  const [open, setOpen] = useState(true);
  return (
    <section className={classes.section} data-span={open && !wide ? Math.min(count, 4) : 4}>
      <SectionTitle title={title} count={count} isOpen={open} onToggle={() => setOpen(!open)} />
      {open && <div className={classes.grid}>{children}</div>}
    </section>
  );
}

function Toolbar({ run, search, change }: Pick<CurvesTabProps, "run" | "search" | "change">) {
  const input = useRef<HTMLInputElement>(null);
  const [typed, setTyped] = useState(search.q ?? "");
  const { counter } = listMeasures(run.definition);
  const axis = search.x ?? counter;
  return (
    <div className={classes.toolbar}>
      <SearchInput
        input={input}
        className={classes.search}
        label="Filter curves (text or regex)"
        value={typed}
        onChange={(q) => {
          setTyped(q);
          change({ q: q || undefined });
        }}
      />
      <SegmentedControl
        aria-label="X axis"
        data={AXES.map((one) => ({ value: one, label: AXIS_LABELS[one] }))}
        value={axis}
        onChange={(x) =>
          change({
            x: x === counter ? undefined : (x as typeof axis),
            start: undefined,
            end: undefined,
          })
        }
      />
      <Smoothing value={search.smooth ?? 0} onChange={(smooth) => change({ smooth })} />
      {(selectTrainingAttempts(run).length > 1 || search.superseded) && (
        <Switch
          label="Superseded points"
          checked={search.superseded ?? false}
          onChange={(event) => change({ superseded: event.currentTarget.checked || undefined })}
        />
      )}
      <ResetZoom range={search} onReset={change} />
    </div>
  );
}

function NoCurves({ run, filtered }: { run: RunDetail; filtered: boolean }) {
  if (filtered)
    return (
      <EmptyState title="No curve matches">
        The filter is a part of a name or a regular expression, for example loss|return.
      </EmptyState>
    );
  if (run.state === "queued") {
    return (
      <EmptyState title="Waiting for a slot">
        {describeWaiting(run) ?? "The curves begin when a worker claims the job."}
      </EmptyState>
    );
  }
  return (
    <EmptyState title="No point yet">The curves begin with the first finished episode.</EmptyState>
  );
}

function describeWaiting(run: RunDetail): string | null {
  return run.jobs.find((job) => job.state === "queued")?.waiting ?? null;
}
