import { Button, Skeleton } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";
import { useControl, useProject } from "@/api/access";
import type { ApiError } from "@/api/client";
import { sessionQuery } from "@/api/queries";
import { accuracyQuery, waitingJobsQuery } from "@/api/queueQueries";
import type { Job, Lane } from "@/api/types";
import { formatCount, formatPlural } from "@/lib/format";
import { findQueryError } from "@/lib/outage";
import { describeAccuracy } from "@/lib/startEstimate";
import { HEARTBEAT_MS } from "@/live/useLiveQueue";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { Panel } from "@/ui/Page";
import { BulkBar } from "./BulkBar";
import { ChangeDialog } from "./ChangeDialog";
import { ExplanationDialog } from "./ExplanationDialog";
import { describeJobPlace } from "./JobName";
import { MoveDialog } from "./MoveDialog";
import { buildOwnOrder, type Move } from "./ownOrder";
import { SharesPanel } from "./SharesPanel";
import type { QueueSearch } from "./search";
import { type Selection, useQueueActions } from "./useQueueActions";
import { useSelection } from "./useSelection";
import classes from "./Waiting.module.css";
import { WaitingList } from "./WaitingList";

/** Jobs that are loaded while one scrolls: as many as have places and estimates. */
const MOST_LOADED = 1_000;
const NO_LANES: readonly Lane[] = [];

/** The shares of a pool, and its waiting jobs with what can be done with them. */
export function WaitingPanel({ pool, search }: { pool: string; search: QueueSearch }) {
  const navigate = useNavigate();
  const project = useProject();
  const session = useQuery({ ...sessionQuery, enabled: false }).data;
  const control = useControl();
  const actions = useQueueActions();
  const [most, setMost] = useState(MOST_LOADED);
  const [explained, setExplained] = useState<Job | null>(null);
  const [changed, setChanged] = useState<Job | null>(null);
  const [moved, setMoved] = useState<{ job: Job; move: Move } | null>(null);
  const within = search.show === "project" ? project : null;
  const query = useInfiniteQuery({
    ...waitingJobsQuery({
      pool,
      priority_class: search.class,
      user: search.show === "mine" ? "me" : undefined,
      project: within ?? undefined,
    }),
    refetchInterval: ({ state }) => HEARTBEAT_MS * (state.data?.pages.length ?? 1),
  });
  const jobs = useMemo(() => joinPages(query.data?.pages ?? []), [query.data]);
  const byId = useMemo(() => new Map(jobs.map((job) => [job.id, job])), [jobs]);
  const isCut = query.hasNextPage;
  const order = useMemo(() => buildOwnOrder(jobs, isCut), [jobs, isCut]);
  const lanes = query.data?.pages[0]?.lanes ?? NO_LANES;
  const count = search.show === "project" ? null : search.show === "mine" ? "mine" : "waiting";
  const total = countLanes(lanes, count, search.class);
  const marked = useSelection(jobs);
  const target: Selection = {
    project: within,
    selection: marked.isAll
      ? {
          pool,
          states: ["queued"],
          ...(search.class ? { priority_class: search.class } : {}),
          ...(search.show === "mine" ? { user: "me" } : {}),
        }
      : { jobs: marked.selected.map((job) => job.id), states: ["queued"] },
  };
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const accuracy = describeAccuracy(useQuery(accuracyQuery(pool)).data);
  const isFull = jobs.length >= most;
  const loadMore = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage && !isFull) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage, isFull]);
  const problem = findQueryError(query);
  const one = (job: Job): Selection => ({ project: null, selection: { jobs: [job.id] } });
  return (
    <>
      <SharesPanel pool={pool} me={session?.user} />
      {marked.selected.length > 0 && (
        <BulkBar
          selected={marked.selected}
          isAll={marked.isAll}
          hasMore={total === null || total > marked.selected.length}
          total={total}
          target={target}
          jobs={byId}
          actions={actions}
          onAll={marked.takeAll}
          onClear={marked.clear}
        />
      )}
      <Panel
        title="Waiting"
        flush
        aside={
          jobs.length > 0 && (
            <span className="faint">
              {total === null
                ? `${formatPlural(jobs.length, "job")} shown`
                : formatPlural(total, "job")}
            </span>
          )
        }
      >
        {problem !== null && query.data === undefined ? (
          <Failure error={problem as ApiError} retry={() => void query.refetch()} />
        ) : query.isPending ? (
          <Skeleton height={280} radius={0} />
        ) : jobs.length === 0 ? (
          <NothingWaits search={search} />
        ) : (
          <WaitingList
            jobs={jobs}
            order={order}
            lanes={lanes as Lane[]}
            count={count}
            me={session?.user}
            hasSeveralProjects={(session?.projects.length ?? 0) > 1}
            selected={marked.ids}
            mayControl={(job) => control(job, "move this job").allowed}
            onSelect={marked.select}
            onMove={(job, move) => setMoved({ job, move })}
            onOpen={(job) => void navigate(describeJobPlace(job))}
            onExplain={setExplained}
            onChange={setChanged}
            onPause={(job) => actions.end("pause", 1, one(job))}
            onCancel={(job) => actions.end("cancel", 1, one(job))}
            onEnd={loadMore}
          />
        )}
        {isFull && hasNextPage && (
          <Rest
            number={total === null ? null : total - jobs.length}
            onMore={() => setMost(jobs.length + MOST_LOADED)}
          />
        )}
        {jobs.length > 0 && accuracy !== null && (
          <p className={classes.accuracy}>Estimates: {accuracy}.</p>
        )}
      </Panel>
      <ExplanationDialog jobId={explained?.id ?? null} onClose={() => setExplained(null)} />
      {changed && (
        <ChangeDialog
          job={changed}
          jobs={byId}
          onDone={actions.changed}
          onClose={() => setChanged(null)}
        />
      )}
      {moved && (
        <MoveDialog
          {...moved}
          jobs={byId}
          onMove={() => void actions.move(order, moved.job, moved.move)}
          onClose={() => setMoved(null)}
        />
      )}
    </>
  );
}

/** The jobs of all pages, each once: a job may move to a later page between two requests. */
function joinPages(pages: readonly { items: readonly Job[] }[]): readonly Job[] {
  const found = new Map<string, Job>();
  for (const { items } of pages) for (const job of items) found.set(job.id, job);
  return [...found.values()];
}

function countLanes(
  lanes: readonly Lane[],
  count: "waiting" | "mine" | null,
  only: string | undefined,
): number | null {
  if (count === null) return null;
  return lanes
    .filter((lane) => only === undefined || lane.priority_class === only)
    .reduce((sum, lane) => sum + lane[count], 0);
}

/** The number of the jobs that are not listed, of which more are loaded on demand. */
function Rest({ number, onMore }: { number: number | null; onMore(): void }) {
  return (
    <div className={classes.rest}>
      <span>
        <b>{number === null ? "More jobs" : formatPlural(number, "more job")}</b>{" "}
        {number === 1 ? "waits" : "wait"} after these, without a place yet. Choose a class or Mine
        above to see fewer.
      </span>
      <Button variant="default" size="xs" onClick={onMore}>
        List {formatCount(MOST_LOADED)} more
      </Button>
    </div>
  );
}

function NothingWaits({ search }: { search: QueueSearch }) {
  const isFiltered = search.show !== undefined || search.class !== undefined;
  return isFiltered ? (
    <EmptyState title="No job waits that matches" small>
      Other jobs may wait in this pool: choose All and All classes above.
    </EmptyState>
  ) : (
    <EmptyState
      title="No job is waiting"
      command="palestra submit examples/cartpole-dqn.yaml --seeds 0-9"
    >
      Jobs beyond the number of slots wait here, each with its place, the reason why it waits and
      the time at which it is expected to start.
    </EmptyState>
  );
}
