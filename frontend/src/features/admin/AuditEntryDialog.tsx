import { Modal } from "@mantine/core";
import type { AuditEntry } from "@/api/types";
import { formatMoment } from "@/lib/format";
import { Facts } from "@/ui/Facts";
import classes from "./Audit.module.css";
import { nameActor, Outcome } from "./auditColumns";

/** Shows all members of an entry of the audit log. */
export function AuditEntryDialog({
  entry,
  onClose,
}: {
  entry: AuditEntry | null;
  onClose(): void;
}) {
  return (
    <Modal
      opened={entry !== null}
      onClose={onClose}
      title={entry && `Entry ${entry.id}: ${entry.action}`}
      size="lg"
    >
      {entry && <Content entry={entry} />}
    </Modal>
  );
}

function Content({ entry }: { entry: AuditEntry }) {
  const code = (text: string | null) => (text === null ? "–" : <code>{text}</code>);
  return (
    <>
      <Facts
        items={[
          ["Time", formatMoment(entry.at)],
          ["Who", nameActor(entry)],
          ["Actor", code(entry.actor)],
          ["Credential", code(entry.credential)],
          ["Address", code(entry.address)],
          ["Object", code(`${entry.object_type} ${entry.object_id}`)],
          ["Project", code(entry.project_id)],
          ["Outcome", <Outcome key="outcome" entry={entry} />],
          ...(entry.code === null ? [] : ([["Refused with", code(entry.code)]] as const)),
          ["Hash", code(entry.hash)],
          ["Previous hash", code(entry.previous_hash)],
        ]}
      />
      {Object.keys(entry.data).length > 0 && (
        <pre className={classes.data} title="What changed">
          {JSON.stringify(entry.data, null, 2)}
        </pre>
      )}
    </>
  );
}
