/** Places the faults that the server found at the fields of the form. */
import { ApiError } from "@/api/client";
import { capitalize } from "@/lib/format";

export interface Fault {
  pointer: string;
  message: string;
}

/** The JSON pointer of a member. */
export function buildPointer(path: readonly (string | number)[]): string {
  return path.map((key) => `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** The faults of a refused request; one without a pointer where the server names none. */
export function listFaults(error: unknown): Fault[] {
  if (error === null || error === undefined) return [];
  if (error instanceof ApiError && error.errors.length > 0) return [...error.errors];
  return [{ pointer: "", message: error instanceof Error ? error.message : String(error) }];
}

/** The message for the field of a member: of a fault at it, or at a part of it that has no field. */
export function findFault(
  faults: readonly Fault[],
  path: readonly (string | number)[],
  hasFields = false,
): string | undefined {
  const pointer = buildPointer(path);
  const found = faults.find(
    (one) => one.pointer === pointer || (!hasFields && one.pointer.startsWith(`${pointer}/`)),
  );
  return found && capitalize(found.message);
}

/** Where a fault is, as a path with dots, without the name of the document's part. */
export function describePlace(pointer: string): string {
  const keys = pointer.split("/").slice(1);
  const names = keys.map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
  return (names[0] === "definition" ? names.slice(1) : names).join(".");
}

/** Whether a fault lies at or below one of some members. */
export function isBelow(fault: Fault, paths: readonly (readonly (string | number)[])[]): boolean {
  return paths.some((path) => {
    const pointer = buildPointer(path);
    return fault.pointer === pointer || fault.pointer.startsWith(`${pointer}/`);
  });
}
