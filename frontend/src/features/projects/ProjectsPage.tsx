import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useRef, useState } from "react";
import { usePermission } from "@/api/access";
import { projectsQuery } from "@/api/projects";
import type { Project } from "@/api/types";
import { formatPlural } from "@/lib/format";
import { DataTable } from "@/ui/DataTable";
import { EmptyState } from "@/ui/EmptyState";
import { IconPlus } from "@/ui/icons";
import { ListFrame } from "@/ui/ListFrame";
import { Page, Panel } from "@/ui/Page";
import { Permitted } from "@/ui/Permitted";
import { SearchInput } from "@/ui/SearchInput";
import { CreateProject } from "./CreateProject";
import { DeletedProjects } from "./DeletedProjects";
import { projectColumns } from "./projectColumns";

/** Number of projects from which a search field is shown. */
const SEARCHED_FROM = 10;

/** All projects of the server, for its administrators. */
export function ProjectsPage() {
  const query = useQuery(projectsQuery);
  const right = usePermission("server.projects");
  const [creating, setCreating] = useState(false);
  const projects = query.data ?? [];
  return (
    <Page
      title="Projects"
      facts={<span>Experiments belong to projects; a user has a role in each project</span>}
      actions={
        <Permitted reason={right.reason}>
          <Button leftSection={<IconPlus size={14} />} onClick={() => setCreating(true)}>
            New project
          </Button>
        </Permitted>
      }
    >
      <ListFrame query={query}>
        <Lists projects={projects} />
        {right.allowed && <DeletedProjects />}
      </ListFrame>
      {creating && <CreateProject onClose={() => setCreating(false)} />}
    </Page>
  );
}

function Lists({ projects }: { projects: readonly Project[] }) {
  const [text, setText] = useState("");
  const input = useRef<HTMLInputElement>(null);
  const found = projects.filter(({ name, slug }) =>
    `${name} ${slug}`.toLowerCase().includes(text.trim().toLowerCase()),
  );
  const open = found.filter((one) => one.archived_at === null);
  const archived = found.filter((one) => one.archived_at !== null);
  return (
    <>
      <Panel
        flush
        title={
          projects.length < SEARCHED_FROM ? (
            "Projects"
          ) : (
            <SearchInput input={input} label="Search projects" value={text} onChange={setText} />
          )
        }
        aside={<span>{formatPlural(open.length, "project")}</span>}
      >
        {open.length > 0 ? (
          <List label="Projects" projects={open} />
        ) : (
          <EmptyState title={text === "" ? "No project is open" : "No project matches"}>
            {text === ""
              ? "Create a project, or restore an archived one, so that experiments can be submitted."
              : "Projects are found by a part of their name or slug."}
          </EmptyState>
        )}
      </Panel>
      {archived.length > 0 && (
        <Panel
          flush
          title="Archived"
          aside={<span>nothing can be submitted to them until they are restored</span>}
        >
          <List label="Archived projects" projects={archived} />
        </Panel>
      )}
    </>
  );
}

function List({ label, projects }: { label: string; projects: readonly Project[] }) {
  const navigate = useNavigate();
  const columns = useMemo(projectColumns, []);
  return (
    <DataTable
      label={label}
      rows={projects}
      columns={columns}
      rowId={(row) => row.id}
      onOpen={({ slug }) =>
        void navigate({ to: "/p/$project/settings", params: { project: slug } })
      }
    />
  );
}
