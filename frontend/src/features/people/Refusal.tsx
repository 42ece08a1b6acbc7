import { Alert } from "@mantine/core";

/** What the server answered to an action that it refused, beside the action. */
export function Refusal({ error }: { error: Error | null }) {
  if (error === null) return null;
  return (
    <Alert color="red" variant="light" p="xs" role="alert">
      {error.message}
    </Alert>
  );
}
