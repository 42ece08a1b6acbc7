import { Button } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQuery } from "@tanstack/react-query";
import { Link, Navigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { ApiError } from "@/api/client";
import { findExperimentQuery, sessionQuery } from "@/api/queries";
import { EmptyState } from "@/ui/EmptyState";
import { Page, Panel } from "@/ui/Page";
import type { ExperimentSearch } from "./search";

interface MissingExperimentProps {
  project: string;
  id: string;
  /** Whether the experiment was moved away while the page was open. */
  wasMoved: boolean;
}

/**
 * Shown where a project has no experiment of the ID. Follows one that was moved while it was shown;
 * a link from before a move offers the way, since two projects may have experiments of one ID.
 */
export function MissingExperiment({ project, id, wasMoved }: MissingExperimentProps) {
  const found = useQuery(findExperimentQuery(id));
  const projects = useQuery(sessionQuery).data?.projects ?? [];
  const nameOf = (slug: string) => projects.find((one) => one.slug === slug)?.name ?? slug;
  const where = found.data;
  if (wasMoved && where)
    return <FollowMove id={id} project={where.project} name={nameOf(where.project)} />;
  const title = wasMoved ? "This experiment was moved to another project" : "Not in this project";
  return (
    <Page title="Experiment">
      <Panel>
        <EmptyState
          title={title}
          actions={
            <>
              {where && (
                <Button
                  component={Link}
                  to="/p/$project/experiments/$experimentId"
                  params={{ project: where.project, experimentId: id } as never}
                >
                  Open it in {nameOf(where.project)}
                </Button>
              )}
              <Button
                component={Link}
                to="/p/$project/experiments"
                params={{ project } as never}
                variant="default"
              >
                Experiments of {nameOf(project)}
              </Button>
            </>
          }
        >
          {where ? (
            <>
              <code>{id}</code> is in the project {nameOf(where.project)}. Its runs kept their IDs.
            </>
          ) : (
            found.isError && describeAbsence(found.error, wasMoved)
          )}
        </EmptyState>
      </Panel>
    </Page>
  );
}

/** Opens an experiment in the project to which it was moved, with the same view of it. */
function FollowMove({ id, project, name }: { id: string; project: string; name: string }) {
  useEffect(() => {
    notifications.show({ message: `This experiment was moved to ${name}` });
  }, [name]);
  return (
    <Navigate
      to="/p/$project/experiments/$experimentId"
      params={{ project, experimentId: id }}
      search={(before) => before as ExperimentSearch}
      replace
    />
  );
}

function describeAbsence(error: Error, wasMoved: boolean): string {
  if (error instanceof ApiError && error.code === "ambiguous_experiment")
    return "Several of your other projects have an experiment of this ID. Open it from the list of its project.";
  return wasMoved
    ? "You are no member of that project. A maintainer of it, or an administrator of the server, can add you."
    : "The link may be mistyped, or the experiment was moved to a project of which you are no member.";
}
