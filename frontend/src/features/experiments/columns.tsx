import { Link } from "@tanstack/react-router";
import type { Experiment } from "@/api/types";
import { groupColor, type Scheme } from "@/lib/color";
import { ago, moment, toNumber } from "@/lib/format";
import { Dot, ScoreText } from "@/ui/Bits";
import type { Column } from "@/ui/DataTable";
import { StateBadge, StateCounts } from "@/ui/State";
import classes from "./ExperimentsPage.module.css";

export function experimentColumns(scheme: Scheme): Column<Experiment>[] {
  return [
    {
      id: "name",
      header: "Name",
      cell: (row) => (
        <span className={classes.name}>
          <Dot color={groupColor(row.id, scheme)} />
          <Link to="/experiments/$experimentId" params={{ experimentId: row.id }} title={row.id}>
            {row.name}
          </Link>
        </span>
      ),
    },
    { id: "state", header: "State", width: 124, cell: (row) => <StateBadge state={row.state} /> },
    { id: "runs", header: "Runs", width: 172, hide: "narrow", cell: (row) => <StateCounts counts={row.runs} /> },
    {
      id: "score",
      header: "Latest evaluation",
      width: 180,
      align: "right",
      hide: "narrow",
      cell: (row) => <Latest row={row} />,
    },
    {
      id: "agent",
      header: "Agent",
      width: 104,
      hide: "medium",
      cell: (row) => <span title={row.agent}>{row.agent}</span>,
    },
    {
      id: "env",
      header: "Environment",
      width: 128,
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
      id: "created_at",
      header: "Created",
      width: 106,
      align: "right",
      cell: (row) => <span title={moment(row.created_at)}>{ago(row.created_at)}</span>,
    },
  ];
}

function Latest({ row }: { row: Experiment }) {
  const score = row.latest_evaluation;
  if (score === null) return <span className="faint">none yet</span>;
  if (score.runs === 1) return <ScoreText mean={score.mean} spread={Math.abs(toNumber(score.mean)) / 20} n={1} />;
  return <ScoreText mean={score.mean} spread={score.stdev} n={score.runs} />;
}
