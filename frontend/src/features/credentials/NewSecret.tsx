import type { Token } from "@/api/types";
import { getServerAddress } from "@/lib/publicPath";
import { CodeBlock } from "@/ui/Copy";
import { SecretDialog } from "@/ui/SecretDialog";

interface NewSecretProps {
  project: string;
  /** `null` while the dialog is closed. */
  token: Token | null;
  onClose(): void;
}

/** Shows the secret of a new or rotated token, and how a pipeline uses it. */
export function NewSecret({ project, token, onClose }: NewSecretProps) {
  return (
    <SecretDialog
      title={`Secret of ${token?.name ?? ""}`}
      secret={token?.secret ?? null}
      onClose={onClose}
    >
      <p className="muted">
        Store it among the secrets of your CI as <code>PALESTRA_TOKEN</code>. Then a pipeline runs:
      </p>
      <CodeBlock
        text={[
          `export PALESTRA_SERVER=${getServerAddress()}`,
          `export PALESTRA_PROJECT=${project}`,
          "palestra submit experiment.yaml --watch",
        ].join("\n")}
      />
    </SecretDialog>
  );
}
