import { ActionIcon, Button, Modal, Select, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useMemo, useState } from "react";
import { type Right, useProjectRight } from "@/api/access";
import { removeMember, setMember } from "@/api/adminActions";
import { adminKeys, membersQuery } from "@/api/adminQueries";
import { keys } from "@/api/queries";
import type { Member, Role } from "@/api/types";
import { formatDay, formatMoment, formatPlural } from "@/lib/format";
import { type Column, DataTable } from "@/ui/DataTable";
import { IconX } from "@/ui/icons";
import { ListFrame } from "@/ui/ListFrame";
import { Page, Panel } from "@/ui/Page";
import { Permitted } from "@/ui/Permitted";
import classes from "./Members.module.css";

const ROLES: { value: Role; label: string }[] = [
  { value: "viewer", label: "viewer: reads" },
  { value: "member", label: "member: submits, acts on own runs" },
  { value: "maintainer", label: "maintainer: acts on all runs, manages members" },
];

/** The members of a project with their roles. */
export function MembersPage({ project }: { project: string }) {
  const query = useQuery(membersQuery(project));
  const right = useProjectRight("project.members", project);
  const change = useMembers(project);
  const [leaving, setLeaving] = useState<Member | null>(null);
  const columns = useMemo(
    () => memberColumns(right, (user, role) => change.mutate({ user, role }), setLeaving),
    [right, change.mutate],
  );
  const members = query.data ?? [];
  return (
    <Page title="Members" facts={<span>of the project {project}</span>}>
      <Panel
        flush
        title={<AddMember right={right} add={change.mutateAsync} />}
        aside={members.length > 0 && <span>{formatPlural(members.length, "member")}</span>}
        className={classes.panel}
      >
        <ListFrame query={query} lines={2}>
          <DataTable
            label="Members"
            rows={members}
            columns={columns}
            rowId={(member) => member.user_id}
          />
        </ListFrame>
      </Panel>
      <Modal
        opened={leaving !== null}
        onClose={() => setLeaving(null)}
        title={`Remove ${leaving?.user} from ${project}?`}
      >
        <p>
          The rights of {leaving?.user} in this project end at once. What {leaving?.user} submitted
          stays, and running jobs go on.
        </p>
        <div className="row" style={{ justifyContent: "flex-end", marginTop: 20 }}>
          <Button variant="default" onClick={() => setLeaving(null)} data-autofocus>
            Keep
          </Button>
          <Button
            color="red"
            onClick={() => {
              if (leaving !== null) change.mutate({ user: leaving.user, role: null });
              setLeaving(null);
            }}
          >
            Remove
          </Button>
        </div>
      </Modal>
    </Page>
  );
}

interface Change {
  user: string;
  /** `null` removes the user. */
  role: Role | null;
}

function useMembers(project: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async ({ user, role }: Change): Promise<void> => {
      await (role === null ? removeMember(project, user) : setMember(project, user, role));
    },
    // The change may concern the caller, too.
    onSettled: () =>
      Promise.all([
        client.invalidateQueries({ queryKey: adminKeys.members(project) }),
        client.invalidateQueries({ queryKey: keys.session }),
      ]),
    onError: (error) =>
      notifications.show({ color: "red", title: "The request failed", message: error.message }),
  });
}

function AddMember({ right, add }: { right: Right; add(change: Change): Promise<void> }) {
  const [user, setUser] = useState("");
  const [role, setRole] = useState<Role>("member");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!right.allowed) return;
    // A refusal is shown as a notification, and what was typed stays.
    add({ user: user.trim(), role }).then(
      () => setUser(""),
      () => undefined,
    );
  };
  return (
    <form className={classes.add} onSubmit={submit}>
      <TextInput
        aria-label="Login name"
        placeholder="Login name"
        required
        disabled={!right.allowed}
        value={user}
        onChange={(event) => setUser(event.currentTarget.value)}
      />
      <Select
        aria-label="Role"
        data={ROLES}
        value={role}
        onChange={(chosen) => chosen && setRole(chosen as Role)}
        allowDeselect={false}
        disabled={!right.allowed}
        className={classes.role ?? ""}
      />
      <Permitted reason={right.reason}>
        <Button type="submit">Add</Button>
      </Permitted>
    </form>
  );
}

function memberColumns(
  right: Right,
  setRole: (user: string, role: Role) => void,
  remove: (member: Member) => void,
): Column<Member>[] {
  return [
    {
      id: "user",
      header: "User",
      cell: (member) => (
        <span className={classes.user}>
          <b>{member.display_name || member.user}</b>
          {member.display_name && <span className="muted">{member.user}</span>}
          {member.service_account && <span className="faint">service account</span>}
          {member.disabled && <span className="faint">disabled</span>}
        </span>
      ),
    },
    {
      id: "role",
      header: "Role",
      width: 156,
      cell: (member) =>
        right.allowed ? (
          <Select
            aria-label={`Role of ${member.user}`}
            data={ROLES.map(({ value }) => value).filter(
              (role) => role !== "maintainer" || !member.service_account,
            )}
            value={member.role}
            onChange={(role) => role && role !== member.role && setRole(member.user, role as Role)}
            allowDeselect={false}
            variant="unstyled"
          />
        ) : (
          member.role
        ),
    },
    {
      id: "since",
      header: "Member since",
      width: 116,
      align: "right",
      hide: "narrow",
      cell: (member) => <span title={formatMoment(member.since)}>{formatDay(member.since)}</span>,
    },
    {
      id: "remove",
      header: "",
      width: 48,
      align: "right",
      cell: (member) => (
        <Permitted
          reason={
            member.service_account && right.allowed
              ? "A service account stays a member of its project."
              : right.reason
          }
        >
          <ActionIcon size={22} aria-label={`Remove ${member.user}`} onClick={() => remove(member)}>
            <IconX size={14} />
          </ActionIcon>
        </Permitted>
      ),
    },
  ];
}
