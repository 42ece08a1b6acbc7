import type { Token } from "@/api/types";
import { CodeBlock } from "@/ui/Copy";
import { SecretDialog } from "@/ui/SecretDialog";

interface OwnSecretProps {
  /** `null` while the dialog is closed. */
  token: Token | null;
  onClose(): void;
}

/** Shows the secret of a new or rotated token of the caller, and the command that takes it. */
export function OwnSecret({ token, onClose }: OwnSecretProps) {
  const isOfWorkers = token?.scopes.includes("worker") ?? false;
  return (
    <SecretDialog
      title={`Secret of ${token?.name ?? ""}`}
      secret={token?.secret ?? null}
      onClose={onClose}
    >
      <p className="muted">
        {isOfWorkers
          ? "Write it into a file that only the worker's user may read, and start the worker:"
          : "Run this on the machine where you work; it asks for the secret and keeps it. Programs take it from the variable PALESTRA_TOKEN."}
      </p>
      <CodeBlock
        label="Command"
        text={
          isOfWorkers
            ? `palestra worker --server ${window.location.origin} --token-file worker.token`
            : `palestra login ${window.location.origin}`
        }
      />
    </SecretDialog>
  );
}
