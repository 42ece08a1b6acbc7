import { useQuery } from "@tanstack/react-query";
import { useProjectRight } from "@/api/access";
import { projectQuery } from "@/api/projects";
import { formatDay, formatPlural } from "@/lib/format";
import { ListFrame } from "@/ui/ListFrame";
import { Page, Panel } from "@/ui/Page";
import { EndOfProject } from "./EndOfProject";
import { GeneralSettings } from "./GeneralSettings";
import { ProjectPools } from "./ProjectPools";
import classes from "./Projects.module.css";
import { StorageSettings } from "./StorageSettings";
import { Thresholds } from "./Thresholds";

/** The settings of a project: name, storage limit, pools, thresholds, archiving and deletion. */
export function ProjectSettingsPage({ slug }: { slug: string }) {
  const query = useQuery(projectQuery(slug));
  const right = useProjectRight("project.settings", slug);
  const project = query.data;
  return (
    <Page
      title="Project settings"
      heading={project?.name ?? slug}
      facts={
        project && (
          <>
            <span>{formatPlural(project.members, "member")}</span>
            <span>{formatPlural(project.experiments, "experiment")}</span>
            <span>{formatPlural(project.runs, "run")}</span>
            <span>created {formatDay(project.created_at)}</span>
            {project.archived_at && <span>archived {formatDay(project.archived_at)}</span>}
          </>
        )
      }
    >
      {project === undefined ? (
        <Panel>
          <ListFrame query={query}>{null}</ListFrame>
        </Panel>
      ) : (
        <>
          <div className={classes.columns}>
            <GeneralSettings key={project.slug} project={project} right={right} />
            <div>
              <StorageSettings key={String(project.storage_limit)} project={project} />
              <ProjectPools project={project} />
            </div>
          </div>
          <Thresholds slug={project.slug} right={right} />
          <EndOfProject project={project} right={right} />
        </>
      )}
    </Page>
  );
}
