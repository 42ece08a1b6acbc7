import { Button } from "@mantine/core";
import { Link, useRouter } from "@tanstack/react-router";
import { ApiError } from "@/api/client";
import { Failure } from "@/ui/Empty";
import { Page, Panel } from "@/ui/Page";

export function NotFound() {
  return (
    <Page title="Not found">
      <Panel>
        <Failure
          error={{ status: 404, message: "This address leads nowhere. The link may be old, or the thing was removed." }}
        />
        <div className="row" style={{ justifyContent: "center", paddingBottom: 24 }}>
          <Button component={Link} to="/experiments">
            All experiments
          </Button>
        </div>
      </Panel>
    </Page>
  );
}

export function Crash({ error }: { error: unknown }) {
  const router = useRouter();
  const shown = error instanceof ApiError ? error : { message: error instanceof Error ? error.message : String(error) };
  return (
    <Page title="Error">
      <Panel>
        <Failure error={shown} retry={() => void router.invalidate()} />
      </Panel>
    </Page>
  );
}
