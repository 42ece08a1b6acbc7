import { Alert } from "@mantine/core";

/** Why a request was refused, where no field shows it. */
export function Refusal({ text }: { text: string | null }) {
  return (
    text && (
      <Alert color="red" role="alert">
        {text}
      </Alert>
    )
  );
}
