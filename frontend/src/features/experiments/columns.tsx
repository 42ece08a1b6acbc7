import { Checkbox } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { Experiment } from "@/api/types";
import { chooseGroupColor, type Scheme } from "@/lib/color";
import { formatAge, formatMoment } from "@/lib/format";
import type { Column } from "@/ui/DataTable";
import { Dot } from "@/ui/Dot";
import { ScoreText } from "@/ui/ScoreText";
import { StateBadge, StateCounts } from "@/ui/StateBadge";
import classes from "./ExperimentsPage.module.css";

/** A column whose boxes select experiments. */
export function selectColumn(
  selected: ReadonlySet<string>,
  onChange: (selected: ReadonlySet<string>) => void,
): Column<Experiment> {
  return {
    id: "select",
    header: "",
    width: 36,
    cell: (row) => (
      <Checkbox
        size="xs"
        aria-label={`Select ${row.name} (${row.id})`}
        checked={selected.has(row.id)}
        onChange={(event) => {
          const next = new Set(selected);
          if (event.currentTarget.checked) next.add(row.id);
          else next.delete(row.id);
          onChange(next);
        }}
      />
    ),
  };
}

export function experimentColumns(scheme: Scheme): Column<Experiment>[] {
  return [
    {
      id: "name",
      header: "Name",
      cell: (row) => (
        <span className={classes.name}>
          <Dot color={chooseGroupColor(row.id, scheme)} />
          <Link
            to="/p/$project/experiments/$experimentId"
            params={{ project: row.project, experimentId: row.id }}
            title={row.id}
          >
            {row.name}
          </Link>
        </span>
      ),
    },
    { id: "state", header: "State", width: 124, cell: (row) => <StateBadge state={row.state} /> },
    {
      id: "runs",
      header: "Runs",
      width: 136,
      hide: "narrow",
      cell: (row) => <StateCounts counts={row.runs} />,
    },
    {
      id: "score",
      header: "Latest evaluation",
      width: 178,
      align: "right",
      hide: "narrow",
      cell: (row) => <Latest row={row} />,
    },
    {
      id: "agent",
      header: "Agent",
      width: 76,
      hide: "medium",
      cell: (row) => <span title={row.agent}>{row.agent}</span>,
    },
    {
      id: "env",
      header: "Environment",
      width: 112,
      hide: "medium",
      cell: (row) => <span title={row.env}>{row.env}</span>,
    },
    {
      id: "id",
      header: "ID",
      width: 136,
      hide: "wide",
      cell: (row) => (
        <span className={`${classes.id} mono`} title={row.id}>
          …{row.id.slice(-16)}
        </span>
      ),
    },
    {
      id: "by",
      header: "By",
      width: 76,
      hide: "medium",
      cell: (row) => <span title={row.created_by}>{row.created_by}</span>,
    },
    {
      id: "created_at",
      header: "Created",
      width: 96,
      align: "right",
      hide: "narrow",
      cell: (row) => <span title={formatMoment(row.created_at)}>{formatAge(row.created_at)}</span>,
    },
  ];
}

function Latest({ row }: { row: Experiment }) {
  const score = row.latest_evaluation;
  const [failure] = row.failures;
  if (score === null && failure !== undefined) {
    return (
      <span className={classes.why} title={failure.message}>
        {failure.message}
      </span>
    );
  }
  if (score === null) return <span className="faint">none yet</span>;
  return (
    <>
      {score.metric !== null && <span className="faint">{score.metric} </span>}
      <ScoreText mean={score.mean} spread={score.stdev} kind="sd" n={score.runs} of="run" />
    </>
  );
}
