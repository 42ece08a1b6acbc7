import { Button } from "@mantine/core";
import { Link, useParams, useRouter } from "@tanstack/react-router";
import { useEffect } from "react";
import { usePermission } from "@/api/access";
import { ApiError } from "@/api/client";
import { computeRetryDelay, isTransient } from "@/lib/outage";
import { Failure } from "@/ui/Failure";
import { Page, Panel } from "@/ui/Page";

/** Number of consecutive failures whose retry delay applies before the page is loaded again. */
const FAILURES = 3;

export function NotFound() {
  return (
    <Page title="Page not found">
      <Panel>
        <p className="muted">The link may be old or mistyped, or its target was removed.</p>
        <div className="row" style={{ paddingTop: 14 }}>
          <Button component={Link} to="/">
            All experiments
          </Button>
        </div>
      </Panel>
    </Page>
  );
}

/** Shown for a project that does not exist or that the user is no member of. */
export function NoProject() {
  const { project = "" } = useParams({ strict: false });
  const manager = usePermission("server.projects");
  return (
    <Page title="Project not found">
      <Panel>
        <p className="muted">
          There is no project <code>{project}</code>, or you are no member of it. A maintainer of
          the project, or an administrator of the server, can add you.
        </p>
        <div className="row" style={{ paddingTop: 14 }}>
          <Button component={Link} to="/">
            Your projects
          </Button>
          {manager.allowed && (
            <Button
              component={Link}
              to="/p/$project/settings"
              params={{ project } as never}
              variant="default"
            >
              Settings of {project}
            </Button>
          )}
        </div>
      </Panel>
    </Page>
  );
}

/** Replaces a page that could not be shown. After a transient failure the page is loaded again. */
export function ErrorPage({ error }: { error: unknown }) {
  const router = useRouter();
  useEffect(() => {
    if (!isTransient(error)) return;
    const timer = setTimeout(() => void router.invalidate(), computeRetryDelay(FAILURES, error));
    return () => clearTimeout(timer);
  }, [error, router]);
  const shown =
    error instanceof ApiError
      ? error
      : { message: error instanceof Error ? error.message : String(error) };
  return (
    <Page title="Error">
      <Panel>
        <Failure error={shown} retry={() => void router.invalidate()} />
      </Panel>
    </Page>
  );
}
