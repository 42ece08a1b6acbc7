import { Button } from "@mantine/core";
import { isPassing } from "@/lib/outage";
import classes from "./EmptyState.module.css";
import { IconRefresh } from "./icons";

interface Explained {
  message: string;
  status?: number;
  requestId?: string | null;
  code?: string;
}

/** What went wrong, what to do, and the id under which the server's log has it. */
export function Failure({
  error,
  retry,
  small = false,
}: {
  error: Explained;
  retry?: () => void;
  small?: boolean;
}) {
  return (
    <div className={small ? classes.small : classes.empty} role="alert">
      <strong className={classes.title}>
        {error.status === 404 ? "Not found" : "This could not be loaded"}
      </strong>
      <p className={classes.text}>{error.message}</p>
      {isPassing(error) && (
        <p className={classes.request}>It is tried again by itself every few seconds.</p>
      )}
      {error.requestId && (
        <p className={classes.request}>
          request <code>{error.requestId}</code>
          {error.code && (
            <>
              {" · "}
              <code>{error.code}</code>
            </>
          )}
        </p>
      )}
      {retry && (
        <Button variant="default" leftSection={<IconRefresh size={14} />} onClick={retry}>
          {isPassing(error) ? "Try now" : "Try again"}
        </Button>
      )}
    </div>
  );
}
