import { Button } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useEffect, useState } from "react";

/** Time in which an action that cannot be undone may be called off, in milliseconds. */
const DELAY_MS = 8_000;

const pending = new Set<string>();

function warnBeforeLeaving(event: BeforeUnloadEvent): void {
  event.preventDefault();
}

/**
 * Announces an action that cannot be undone, and does it some seconds later unless it is called
 * off. Whoever leaves the dashboard before that is asked.
 *
 * @param message What will happen: "3 jobs will be cancelled".
 */
export function runDelayed(message: string, action: () => void, delay = DELAY_MS): void {
  const due = Date.now() + delay;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = () => {
    clearTimeout(timer);
    pending.delete(id);
    notifications.hide(id);
    if (pending.size === 0) window.removeEventListener("beforeunload", warnBeforeLeaving);
  };
  const id = notifications.show({
    withBorder: true,
    autoClose: false,
    withCloseButton: false,
    message: <Announcement message={message} due={due} onCall={() => end()} />,
  });
  pending.add(id);
  window.addEventListener("beforeunload", warnBeforeLeaving);
  timer = setTimeout(() => {
    end();
    action();
  }, delay);
}

function Announcement({ message, due, onCall }: { message: string; due: number; onCall(): void }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(1, Math.ceil((due - now) / 1000));
  return (
    <div className="row" style={{ justifyContent: "space-between" }}>
      <span>
        {message} in {seconds} s
      </span>
      <Button variant="subtle" size="compact-xs" onClick={onCall}>
        Undo
      </Button>
    </div>
  );
}
