import { useMutation } from "@tanstack/react-query";
import { revokeToken } from "@/api/serviceAccounts";
import type { Token } from "@/api/types";
import { ago } from "@/lib/format";
import { FormDialog } from "@/ui/FormDialog";
import { useCredentialRefresh } from "./useCredentialRefresh";

/** Ends a token at once, after a question. */
export function RevokeToken({ token, onClose }: { token: Token; onClose(): void }) {
  const refresh = useCredentialRefresh();
  const revoke = useMutation({
    mutationFn: () => revokeToken(token.id),
    onSuccess: async () => {
      await refresh();
      onClose();
    },
  });
  return (
    <FormDialog
      opened
      title={`Revoke ${token.name}?`}
      submit="Revoke"
      destructive
      isPending={revoke.isPending}
      problem={revoke.error?.message}
      onSubmit={() => revoke.mutate()}
      onClose={onClose}
    >
      <p>
        Programs that use the token are refused at once, and it cannot be restored.{" "}
        {token.last_used_at ? `It was last used ${ago(token.last_used_at)}.` : "It was never used."}
      </p>
    </FormDialog>
  );
}
