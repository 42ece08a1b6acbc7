import { Button } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import type { Invitation } from "@/api/types";
import { formatMoment, formatPlural } from "@/lib/format";
import { CodeBlock } from "@/ui/Copy";
import { IconCheck, IconCopy } from "@/ui/icons";
import { Panel } from "@/ui/Page";
import classes from "./Invitations.module.css";
import { invitedName } from "./invitationColumns";

interface NewLinksProps {
  invitations: readonly Invitation[];
  onClose(): void;
}

/** The links of new invitations, which are not shown again. */
export function NewLinks({ invitations, onClose }: NewLinksProps) {
  const clipboard = useClipboard({ timeout: 1500 });
  const all = invitations.map((one) => `${invitedName(one)}: ${one.url}`).join("\n");
  const [first] = invitations;
  return (
    <Panel
      title={`${formatPlural(invitations.length, "new link")}, shown only now`}
      aside={
        <>
          {invitations.length > 1 && (
            <Button
              variant="default"
              leftSection={clipboard.copied ? <IconCheck size={14} /> : <IconCopy size={14} />}
              onClick={() => clipboard.copy(all)}
            >
              {clipboard.copied ? "Copied" : "Copy all"}
            </Button>
          )}
          <Button variant="default" onClick={onClose}>
            Done
          </Button>
        </>
      }
    >
      <p className="muted">
        Give each person the link beside the name, by a way that others do not read: whoever opens
        it first becomes that user.{" "}
        {first && `The links expire at ${formatMoment(first.expires_at)}.`}
      </p>
      <ul className={classes.links} aria-label="New links">
        {invitations.map((one) => (
          <li key={one.id}>
            <b>{invitedName(one)}</b>
            <CodeBlock text={one.url ?? ""} label={`Link of ${invitedName(one)}`} />
          </li>
        ))}
      </ul>
    </Panel>
  );
}
