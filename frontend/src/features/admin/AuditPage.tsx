import { Button, Skeleton } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { usePermission } from "@/api/access";
import { auditExport, auditQuery } from "@/api/adminQueries";
import type { ApiError } from "@/api/client";
import type { AuditEntry } from "@/api/types";
import { problemOf } from "@/lib/outage";
import { tidy } from "@/lib/search";
import { DataTable } from "@/ui/DataTable";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { IconDownload } from "@/ui/icons";
import { Page, Panel } from "@/ui/Page";
import classes from "./Audit.module.css";
import { AuditEntryDialog } from "./AuditEntryDialog";
import { AuditFilters } from "./AuditFilters";
import { auditColumns } from "./auditColumns";
import { type AuditSearch, auditParameters } from "./auditSearch";

interface AuditPageProps {
  /** Slug of the project; `null` shows the log of the whole server. */
  project: string | null;
  search: AuditSearch;
  onSearch(search: AuditSearch): void;
}

/** Who did what to which object, when and from where. */
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
            href={auditExport(project, auditParameters(props.search))}
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
  const filter = useMemo(() => auditParameters(search), [search]);
  const query = useInfiniteQuery(auditQuery(project, filter));
  const problem = problemOf(query);
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
      {problem !== null && query.data === undefined ? (
        <Failure error={problem as ApiError} retry={() => void query.refetch()} />
      ) : query.isPending ? (
        <div className={classes.loading} aria-busy="true">
          <Skeleton height={14} width="86%" />
          <Skeleton height={14} width="74%" />
          <Skeleton height={14} width="80%" />
        </div>
      ) : rows.length === 0 ? (
        <Nothing search={search} onSearch={onSearch} />
      ) : (
        <DataTable
          label="Audit log"
          rows={rows}
          columns={auditColumns}
          rowId={(entry) => String(entry.id)}
          onOpen={setOpened}
          footer={
            query.hasNextPage && (
              <div className={classes.more}>
                <Button
                  variant="default"
                  loading={query.isFetchingNextPage}
                  onClick={() => void query.fetchNextPage()}
                >
                  Show older entries
                </Button>
              </div>
            )
          }
        />
      )}
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
      <div className={classes.more}>
        <Button variant="default" onClick={() => onSearch({})}>
          Clear the filter
        </Button>
      </div>
    </>
  );
}
