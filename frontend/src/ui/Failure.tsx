import { Button } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { isTransient, repeatUnanswered } from "@/lib/outage";
import classes from "./EmptyState.module.css";
import { IconRefresh } from "./icons";
import { Message } from "./Message";

interface Explained {
  message: string;
  status?: number;
  requestId?: string | null;
  code?: string;
}

/** An error, what to do, and the ID of the request in the server's log. */
export function Failure({
  error,
  retry,
  small = false,
}: {
  error: Explained;
  retry?: () => void;
  small?: boolean;
}) {
  const client = useQueryClient();
  return (
    <div className={small ? classes.small : classes.empty} role="alert">
      <strong className={classes.title}>
        {error.status === 404 ? "Not found" : "This could not be loaded"}
      </strong>
      <p className={classes.text}>
        <Message text={error.message} />
      </p>
      {isTransient(error) && (
        <p className={classes.request}>The request is repeated automatically.</p>
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
        <Button
          variant="default"
          leftSection={<IconRefresh size={14} />}
          onClick={() => void repeatUnanswered(client).then(retry)}
        >
          {isTransient(error) ? "Try now" : "Try again"}
        </Button>
      )}
    </div>
  );
}
