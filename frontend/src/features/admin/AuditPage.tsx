import { Button } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { usePermission } from "@/api/access";
import { auditExport, auditQuery } from "@/api/adminQueries";
import type { AuditEntry } from "@/api/types";
import { tidy } from "@/lib/search";
import { DataTable } from "@/ui/DataTable";
import { EmptyState } from "@/ui/EmptyState";
import { IconDownload } from "@/ui/icons";
import { ListFrame } from "@/ui/ListFrame";
import { Page, Panel } from "@/ui/Page";
import { BelowList, ShowMore } from "@/ui/ShowMore";
import classes from "./Audit.module.css";
import { AuditEntryDialog } from "./AuditEntryDialog";
import { AuditFilters } from "./AuditFilters";
import { auditColumns } from "./auditColumns";
import { type AuditSearch, buildAuditParameters } from "./auditSearch";

interface AuditPageProps {
  /** Slug of the project; `null` shows the log of the whole server. */
  project: string | null;
  search: AuditSearch;
  onSearch(search: AuditSearch): void;
}

/** The entries of the audit log, with a filter and an export. */
export function AuditPage(props: AuditPageProps) {
  const { project } = props;
  const right = usePermission(project === null ? "server.audit" : "project.audit", project);
  return (
    <Page
      title="Audit log"
      facts={
        <span>
          {project === null
            ? "Entries of the whole server, in a chain of hashes"
            : `Entries of the project ${project}`}
        </span>
      }
      actions={
        right.allowed && (
          <Button
            component="a"
            href={auditExport(project, buildAuditParameters(props.search))}
            download
            variant="default"
            leftSection={<IconDownload size={14} />}
          >
            Export as JSON lines
          </Button>
        )
      }
    >
      {right.allowed ? (
        <Entries {...props} />
      ) : (
        <Panel>
          <EmptyState title="You may not read this audit log">{right.reason}</EmptyState>
        </Panel>
      )}
    </Page>
  );
}

function Entries({ project, search, onSearch }: AuditPageProps) {
  const filter = useMemo(() => buildAuditParameters(search), [search]);
  const query = useInfiniteQuery(auditQuery(project, filter));
  const [opened, setOpened] = useState<AuditEntry | null>(null);
  const rows = useMemo(() => query.data?.pages.flatMap((page) => page.items) ?? [], [query.data]);
  return (
    <Panel
      flush
      className={classes.panel}
      title={
        <AuditFilters
          search={search}
          onChange={(part) => onSearch(tidy({ ...search, ...part }) as AuditSearch)}
        />
      }
    >
      <ListFrame query={query}>
        {rows.length === 0 ? (
          <Nothing search={search} onSearch={onSearch} />
        ) : (
          <DataTable
            label="Audit log"
            rows={rows}
            columns={auditColumns}
            rowId={(entry) => String(entry.id)}
            onOpen={setOpened}
            footer={<ShowMore query={query} label="Show older entries" />}
          />
        )}
      </ListFrame>
      <AuditEntryDialog entry={opened} onClose={() => setOpened(null)} />
    </Panel>
  );
}

function Nothing({ search, onSearch }: Pick<AuditPageProps, "search" | "onSearch">) {
  if (Object.keys(search).length === 0) {
    return (
      <EmptyState title="No entries yet">
        Logins, changes of credentials and roles, and what users do to jobs are recorded here.
      </EmptyState>
    );
  }
  return (
    <>
      <EmptyState title="No entry matches">
        Remove a part of the filter. A user is found by login name or ID, an action by what it
        begins with, an object by its full ID.
      </EmptyState>
      <BelowList onClick={() => onSearch({})}>Clear the filter</BelowList>
    </>
  );
}
