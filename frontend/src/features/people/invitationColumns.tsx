import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { Invitation } from "@/api/types";
import { formatAge, formatMoment } from "@/lib/format";
import type { Column } from "@/ui/DataTable";
import { StateBadge } from "@/ui/StateBadge";
import classes from "./People.module.css";
import { AdministratorMark, Roles } from "./peopleColumns";

/** The name of an invitation: login name, display name or e-mail address of the person. */
export function invitedName({ name, display_name, email }: Invitation): string {
  return name ?? (display_name || email || "somebody");
}

export function invitationColumns(revoke: (invitation: Invitation) => void): Column<Invitation>[] {
  return [
    { id: "person", header: "For", cell: (row) => <Invited invitation={row} /> },
    {
      id: "projects",
      header: "Roles",
      hide: "narrow",
      cell: (row) =>
        row.is_admin && row.projects.length === 0 ? (
          <AdministratorMark />
        ) : (
          <>
            <Roles projects={row.projects} />
            {row.is_admin && <span className={classes.role}>, administrator</span>}
          </>
        ),
    },
    {
      id: "state",
      header: "State",
      width: 110,
      cell: (row) => <StateBadge state={row.state} bare />,
    },
    {
      id: "expires_at",
      header: "Expires",
      width: 146,
      hide: "narrow",
      cell: ({ expires_at, state }) => (
        <span className={state === "open" ? "" : "faint"} title={formatMoment(expires_at)}>
          {formatMoment(expires_at).slice(0, 16)}
        </span>
      ),
    },
    {
      id: "created_by",
      header: "By",
      width: 110,
      hide: "medium",
      cell: ({ created_by }) => created_by ?? <span className="faint">deleted user</span>,
    },
    {
      id: "created_at",
      header: "Made",
      width: 112,
      align: "right",
      hide: "medium",
      cell: ({ created_at }) => (
        <span title={formatMoment(created_at)}>{formatAge(created_at)}</span>
      ),
    },
    {
      id: "revoke",
      header: "",
      width: 84,
      align: "right",
      cell: (row) =>
        row.state === "open" && (
          <Button
            variant="subtle"
            color="gray"
            size="compact-xs"
            aria-label={`Revoke the invitation of ${invitedName(row)}`}
            onClick={() => revoke(row)}
          >
            Revoke
          </Button>
        ),
    },
  ];
}

function Invited({ invitation }: { invitation: Invitation }) {
  const { display_name, email, redeemed_by } = invitation;
  const name = invitedName(invitation);
  const more = [display_name, email].filter((part) => part && part !== name).join(", ");
  return (
    <span title={[name, more].filter(Boolean).join(", ")}>
      {redeemed_by ? (
        <Link to="/admin/people/$user" params={{ user: redeemed_by }} className={classes.login}>
          {redeemed_by}
        </Link>
      ) : (
        <span className={classes.login}>{name}</span>
      )}{" "}
      <span className="muted">{more}</span>
    </span>
  );
}
