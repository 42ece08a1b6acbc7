import { Select } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { rotateToken } from "@/api/serviceAccounts";
import type { Token } from "@/api/types";
import { formatDay } from "@/lib/format";
import { FormDialog } from "@/ui/FormDialog";
import { LIFETIMES, OVERLAPS } from "./lifetimes";
import { useCredentialRefresh } from "./useCredentialRefresh";

const KEEP = "keep";

interface RotateTokenProps {
  token: Token;
  onClose(): void;
  onRotated(token: Token): void;
}

/** Gives a token a new secret; the previous one stays valid for a while. */
export function RotateToken({ token, onClose, onRotated }: RotateTokenProps) {
  const [overlap, setOverlap] = useState("24");
  const [days, setDays] = useState(KEEP);
  const refresh = useCredentialRefresh();
  const rotate = useMutation({
    mutationFn: () =>
      rotateToken(token.id, {
        overlap_hours: Number(overlap),
        expires_in_days: days === KEEP ? null : Number(days),
      }),
    onSuccess: async (rotated) => {
      onClose();
      onRotated(rotated);
      await refresh();
    },
  });
  const end = token.expires_at === null ? "it never ends" : `ends ${formatDay(token.expires_at)}`;
  return (
    <FormDialog
      opened
      title={`Rotate ${token.name}`}
      submit="Rotate"
      isPending={rotate.isPending}
      problem={rotate.error?.message}
      onSubmit={() => rotate.mutate()}
      onClose={onClose}
    >
      <p>The token gets a new secret. Meanwhile programs may still use the present one.</p>
      <Select
        label="The present secret stays valid"
        data={OVERLAPS}
        value={overlap}
        allowDeselect={false}
        onChange={(chosen) => chosen && setOverlap(chosen)}
      />
      <Select
        label="End of the token"
        data={[
          { value: KEEP, label: `as before: ${end}` },
          ...LIFETIMES.map(({ value, label }) => ({ value, label: `${label} from now on` })),
        ]}
        value={days}
        allowDeselect={false}
        onChange={(chosen) => chosen && setDays(chosen)}
      />
    </FormDialog>
  );
}
