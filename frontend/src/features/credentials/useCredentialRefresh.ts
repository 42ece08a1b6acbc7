import { useQueryClient } from "@tanstack/react-query";
import { adminKeys } from "@/api/adminQueries";
import { credentialKeys } from "@/api/serviceAccounts";

/**
 * Returns a function that reloads tokens, and the service accounts of a project if one is given.
 */
export function useCredentialRefresh(project?: string) {
  const client = useQueryClient();
  return () =>
    Promise.all([
      client.invalidateQueries({ queryKey: credentialKeys.tokens }),
      client.invalidateQueries({ queryKey: ["service accounts"] }),
      ...(project === undefined
        ? []
        : [client.invalidateQueries({ queryKey: adminKeys.members(project) })]),
    ]);
}
