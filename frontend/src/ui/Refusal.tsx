import { Message } from "./Message";
import classes from "./Refusal.module.css";

interface RefusalProps {
  /** The server's message; nothing is shown without one. */
  text: string | null | undefined;
  title?: string | undefined;
  /** ID of the request in the server's log. */
  requestId?: string | null | undefined;
}

/** The reason why a request was refused, shown beside the action or in its form. */
export function Refusal({ text, title, requestId }: RefusalProps) {
  if (!text) return null;
  return (
    <div className={classes.refusal} role="alert">
      {title && <strong>{title}</strong>}
      <p>
        <Message text={text} />
      </p>
      {requestId && (
        <p className={classes.request}>
          request <code>{requestId}</code>
        </p>
      )}
    </div>
  );
}
