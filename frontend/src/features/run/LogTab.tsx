import { Skeleton, Switch } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import type { LogLine, OpenLogLine, RunDetail } from "@/api/types";
import { splitIntoPieces } from "@/lib/ansi";
import { formatClock, formatCount } from "@/lib/format";
import type { LogTail } from "@/live/logTail";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { Panel } from "@/ui/Page";
import { SearchInput } from "@/ui/SearchInput";
import classes from "./LogTab.module.css";

const LINE = 20;

/** The output of the trainer and its supervisor, live. */
export function LogTab({ run, tail }: { run: RunDetail; tail: LogTail }) {
  const state = useSyncExternalStore(tail.subscribe, tail.state);
  const [query, setQuery] = useState("");
  const [follow, setFollow] = useState(true);
  const input = useRef<HTMLInputElement>(null);
  const lines = useMemo(() => {
    const wanted = query.toLowerCase();
    const all = [...state.lines, ...state.openLines];
    return wanted ? all.filter((line) => line.text.toLowerCase().includes(wanted)) : all;
  }, [state.lines, state.openLines, query]);
  return (
    <Panel
      flush
      title={
        <SearchInput
          input={input}
          className={classes.search}
          label="Search the log"
          value={query}
          onChange={setQuery}
        />
      }
      aside={
        <>
          <span className="faint">
            {query ? `${formatCount(lines.length)} of ` : ""}
            {formatCount(state.lines.length + state.openLines.length)} lines
            {state.cut ? ", older ones left out" : ""}
          </span>
          <Switch
            label="Follow"
            checked={follow}
            onChange={(event) => setFollow(event.currentTarget.checked)}
          />
        </>
      }
    >
      {state.loading ? (
        <Skeleton height={300} radius={0} />
      ) : state.error && lines.length === 0 ? (
        <Failure error={state.error} retry={() => tail.reload()} />
      ) : lines.length === 0 ? (
        <EmptyState
          title={query ? "No line matches" : "No line yet"}
          {...(query ? {} : { command: `palestra logs ${run.id} --follow` })}
        >
          {query ? null : "What the trainer prints appears here as it is printed."}
        </EmptyState>
      ) : (
        <Lines lines={lines} follow={follow} onFollow={setFollow} />
      )}
    </Panel>
  );
}

interface LinesProps {
  lines: readonly (LogLine | OpenLogLine)[];
  follow: boolean;
  onFollow(follow: boolean): void;
}

function Lines({ lines, follow, onFollow }: LinesProps) {
  const host = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => host.current,
    estimateSize: () => LINE,
    overscan: 20,
  });
  // The height changes with each new line, and when the height of a wrapped line is measured.
  const height = virtual.getTotalSize();
  // biome-ignore lint/correctness/useExhaustiveDependencies: follows whenever the height changes
  useEffect(() => {
    if (follow && host.current) host.current.scrollTop = host.current.scrollHeight;
  }, [follow, lines.length, height]);
  const onScroll = () => {
    const element = host.current;
    if (element === null) return;
    const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < 2 * LINE;
    if (atEnd !== follow && !atEnd) onFollow(false);
  };
  return (
    <div
      ref={host}
      className={classes.log}
      onWheel={onScroll}
      role="log"
      aria-label="Log"
      aria-live="off"
      tabIndex={0}
      data-testid="log"
    >
      <div style={{ height, position: "relative" }}>
        {virtual.getVirtualItems().map((item) => (
          <div
            key={item.key}
            ref={virtual.measureElement}
            data-index={item.index}
            className={classes.place}
            style={{ transform: `translateY(${item.start}px)` }}
          >
            <Line line={lines[item.index] as LogLine | OpenLogLine} />
          </div>
        ))}
      </div>
    </div>
  );
}

function Line({ line }: { line: LogLine | OpenLogLine }) {
  const isOpen = !("n" in line);
  return (
    <div className={classes.line} data-stream={line.stream} data-open={isOpen || undefined}>
      <span className={classes.number} title={isOpen ? "This line is not complete" : undefined}>
        {isOpen ? "…" : line.n}
      </span>
      <span className={classes.time}>{formatClock(line.wall)}</span>
      <span className={classes.text}>
        {splitIntoPieces(line.text).map((piece, i) => (
          <span
            // biome-ignore lint/suspicious/noArrayIndexKey: pieces of a line never move
            key={i}
            data-color={piece.color}
            style={piece.bold ? { fontWeight: 700 } : undefined}
          >
            {piece.text}
          </span>
        ))}
      </span>
    </div>
  );
}
