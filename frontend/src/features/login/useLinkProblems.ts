import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { previewLink, type RedemptionChoice } from "@/api/actions";
import { LEAST_PASSWORD } from "./forms";

const PAUSE_MS = 350;

/**
 * The server's messages about name and password by JSON pointer, requested after a pause in typing.
 */
export function useLinkProblems(code: string, chosen: RedemptionChoice): Record<string, string> {
  const { user = "", displayName = "", password = "" } = chosen;
  const long = password.length >= LEAST_PASSWORD ? password : "";
  const [typed] = useDebouncedValue(
    JSON.stringify({ user, displayName, password: long }),
    PAUSE_MS,
  );
  const { data } = useQuery({
    queryKey: ["link-problems", typed],
    queryFn: ({ signal }) => previewLink(code, JSON.parse(typed) as RedemptionChoice, signal),
    placeholderData: keepPreviousData,
    // A password must not stay in memory longer than the check of it takes.
    gcTime: 0,
    retry: false,
  });
  return Object.fromEntries((data?.problems ?? []).map((one) => [one.pointer, one.message]));
}
