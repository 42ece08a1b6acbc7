import type { Token } from "@/api/types";
import { getServerAddress } from "@/lib/publicPath";
import { CodeBlock } from "@/ui/Copy";
import { SecretDialog } from "@/ui/SecretDialog";

interface OwnSecretProps {
  /** `null` while the dialog is closed. */
  token: Token | null;
  onClose(): void;
}

/** Shows the secret of a new or rotated token of the caller, and the command that takes it. */
export function OwnSecret({ token, onClose }: OwnSecretProps) {
  return (
    <SecretDialog
      title={`Secret of ${token?.name ?? ""}`}
      secret={token?.secret ?? null}
      onClose={onClose}
    >
      <p className="muted">
        Run this on the machine where you work; it asks for the secret and keeps it. Programs take
        it from the variable PALESTRA_TOKEN.
      </p>
      <CodeBlock label="Command" text={`palestra login ${getServerAddress()}`} />
    </SecretDialog>
  );
}
