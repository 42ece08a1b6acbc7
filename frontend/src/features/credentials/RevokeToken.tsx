import { revokeToken } from "@/api/serviceAccounts";
import type { Token } from "@/api/types";
import { formatAge } from "@/lib/format";
import { ConfirmDialog } from "@/ui/ConfirmDialog";
import { useCredentialRefresh } from "./useCredentialRefresh";

/** Revokes a token after a confirmation. */
export function RevokeToken({ token, onClose }: { token: Token; onClose(): void }) {
  const refresh = useCredentialRefresh();
  return (
    <ConfirmDialog
      title={`Revoke ${token.name}?`}
      submit="Revoke"
      act={() => revokeToken(token.id)}
      onDone={() => refresh().then(onClose)}
      onClose={onClose}
    >
      <p>
        Programs that use the token are refused at once, and it cannot be restored.{" "}
        {token.last_used_at
          ? `It was last used ${formatAge(token.last_used_at)}.`
          : "It was never used."}
      </p>
    </ConfirmDialog>
  );
}
