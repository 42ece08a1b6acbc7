import { ActionIcon, Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { openProjectsQuery } from "@/api/people";
import type { Role } from "@/api/types";
import { IconX } from "@/ui/icons";
import { AddRow } from "./AddRow";
import classes from "./Invitations.module.css";
import { createRole, type RoleDraft } from "./inviteDraft";

const ROLES: { value: Role; label: string }[] = [
  { value: "viewer", label: "viewer: reads" },
  { value: "member", label: "member: submits, acts on own runs" },
  { value: "maintainer", label: "maintainer: acts on all runs, manages members" },
];

interface RoleFieldsProps {
  roles: readonly RoleDraft[];
  /** The server's sentences by pointer; those of the first invitation stand for all. */
  faults: Record<string, string>;
  onChange(roles: RoleDraft[]): void;
}

/** Projects of which the invited people become members, with their role in each. */
export function RoleFields({ roles, faults, onChange }: RoleFieldsProps) {
  const projects = useQuery(openProjectsQuery).data ?? [];
  const change = (key: number, part: Partial<RoleDraft>) =>
    onChange(roles.map((one) => (one.key === key ? { ...one, ...part } : one)));
  const chosen = roles.filter(({ project }) => project !== null);
  const faultOf = (key: number) =>
    faults[`/invitations/0/projects/${chosen.findIndex((one) => one.key === key)}/project`];
  const options = (own: string | null) =>
    projects
      .filter(({ slug }) => slug === own || !roles.some(({ project }) => project === slug))
      .map(({ slug, name }) => ({
        value: slug,
        label: name === slug ? slug : `${name} (${slug})`,
      }));
  return (
    <div className={classes.shared}>
      <h3>Roles in projects</h3>
      {roles.map(({ key, project, role }, i) => (
        <div className={classes.role} key={key}>
          <Select
            aria-label={`Project ${i + 1}`}
            placeholder={projects.length === 0 ? "There is no project yet" : "No project"}
            data={options(project)}
            value={project}
            onChange={(slug) => change(key, { project: slug })}
            searchable={projects.length > 8}
            clearable
            error={faultOf(key)}
          />
          <Select
            aria-label={`Role in project ${i + 1}`}
            data={ROLES}
            value={role}
            onChange={(chosen) => chosen && change(key, { role: chosen as Role })}
            allowDeselect={false}
          />
          <ActionIcon
            aria-label={`Remove project ${i + 1}`}
            onClick={() => onChange(roles.filter((one) => one.key !== key))}
          >
            <IconX size={14} />
          </ActionIcon>
        </div>
      ))}
      {roles.length < projects.length && (
        <AddRow label="Another project" onClick={() => onChange([...roles, createRole()])} />
      )}
    </div>
  );
}
