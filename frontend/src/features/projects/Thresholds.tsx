import { Button } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import type { Right } from "@/api/access";
import { removeThreshold, thresholdKeys, thresholdsQuery } from "@/api/thresholds";
import type { Threshold } from "@/api/types";
import { formatCount, formatPlural, formatValue } from "@/lib/format";
import { writeThresholdKey } from "@/lib/thresholdKeys";
import { ConfirmDialog } from "@/ui/ConfirmDialog";
import { type Column, DataTable } from "@/ui/DataTable";
import { EmptyState } from "@/ui/EmptyState";
import { ListFrame } from "@/ui/ListFrame";
import { Panel } from "@/ui/Page";
import { Permitted } from "@/ui/Permitted";
import { ThresholdDialog } from "./ThresholdDialog";

const PENDING_MS = 2_000;

interface ThresholdsProps {
  slug: string;
  right: Right;
}

/** The thresholds of a project: declared, replaced and removed here, by those who may. */
export function Thresholds({ slug, right }: ThresholdsProps) {
  const client = useQueryClient();
  const query = useQuery({
    ...thresholdsQuery(slug),
    // The comparison with earlier runs creates no event.
    refetchInterval: ({ state }) => ((state.data?.[0]?.pending_runs ?? 0) > 0 ? PENDING_MS : false),
  });
  const [edited, setEdited] = useState<Threshold | "new" | null>(null);
  const [removed, setRemoved] = useState<Threshold | null>(null);
  const refresh = () => client.invalidateQueries({ queryKey: thresholdKeys.of(slug) });
  const columns = useMemo(() => buildColumns(slug, right, setEdited, setRemoved), [slug, right]);
  const pending = query.data?.[0]?.pending_runs ?? 0;
  return (
    <Panel
      flush
      title="Thresholds"
      aside={
        <>
          {pending > 0 && (
            <span className="muted">{formatPlural(pending, "run")} still to be compared</span>
          )}
          <Permitted reason={right.reason}>
            <Button variant="default" size="compact-sm" onClick={() => setEdited("new")}>
              Declare…
            </Button>
          </Permitted>
        </>
      }
    >
      <ListFrame query={query} lines={1}>
        {query.data?.length ? (
          <DataTable
            label="Thresholds"
            rows={query.data}
            columns={columns}
            rowId={(threshold) => threshold.name}
          />
        ) : (
          <EmptyState
            small
            title="No thresholds"
            command={`palestra thresholds set ${slug} solved evaluation/mean 195`}
          >
            Declare a value of a series, such as a mean evaluation of 195: the server then keeps at
            which env_step each run first reached it, and lists filter and sort by{" "}
            <code>reached.solved</code>.
          </EmptyState>
        )}
      </ListFrame>
      {edited && (
        <ThresholdDialog
          slug={slug}
          threshold={edited === "new" ? null : edited}
          onDone={async () => {
            await refresh();
            setEdited(null);
          }}
          onClose={() => setEdited(null)}
        />
      )}
      {removed && (
        <ConfirmDialog
          title={`Remove the threshold ${removed.name}?`}
          submit="Remove"
          act={() => removeThreshold(slug, removed.name)}
          onDone={async () => {
            await refresh();
            setRemoved(null);
          }}
          onClose={() => setRemoved(null)}
        >
          <p>
            Filters that name <code>reached.{removed.name}</code> are refused then. The curves stay.
          </p>
        </ConfirmDialog>
      )}
    </Panel>
  );
}

function buildColumns(
  slug: string,
  right: Right,
  onEdit: (threshold: Threshold) => void,
  onRemove: (threshold: Threshold) => void,
): Column<Threshold>[] {
  return [
    {
      id: "name",
      header: "Name",
      sort: (row) => row.name,
      cell: (row) => (
        <Link to="/p/$project/runs" params={{ project: slug }} search={listRunsBy(row.name)}>
          {row.name}
        </Link>
      ),
    },
    { id: "series", header: "Series", sort: (row) => row.series, cell: (row) => row.series },
    {
      id: "value",
      header: "Reached at",
      width: 150,
      align: "right",
      sort: (row) => row.value,
      cell: (row) =>
        `${row.direction === "at_least" ? "at least" : "at most"} ${formatValue(row.value)}`,
    },
    {
      id: "runs",
      header: "Runs that reached it",
      width: 160,
      align: "right",
      hide: "narrow",
      sort: (row) => row.runs,
      cell: (row) => formatCount(row.runs),
    },
    {
      id: "change",
      header: "",
      width: 204,
      align: "right",
      cell: (row) => (
        <>
          <Permitted reason={right.reason}>
            <Button variant="subtle" size="compact-sm" onClick={() => onEdit(row)}>
              Change…
            </Button>
          </Permitted>
          <Permitted reason={right.reason}>
            <Button variant="subtle" size="compact-sm" onClick={() => onRemove(row)}>
              Remove…
            </Button>
          </Permitted>
        </>
      ),
    },
  ];
}

/** The page of runs with those first that reached a threshold after the fewest env_steps. */
function listRunsBy(name: string) {
  const key = writeThresholdKey(name);
  return {
    sort: key,
    columns: [
      "name",
      "state",
      "agent",
      "env",
      "seed",
      key,
      writeThresholdKey(name, "seconds"),
      "created",
    ].join(","),
  };
}
