import type { Run } from "@/api/types";

export interface BoardProps {
  /** The runs that are shown, in the order of the table. */
  runs: readonly Run[];
  groupBy: readonly string[];
  filter: string;
  project: string | null;
  colour(runId: string): string;
  hovered: string | null;
  onHover(runId: string | null): void;
}

/** Charts of the runs beside the table. */
export function Board({ runs }: BoardProps) {
  return <p className="muted">{runs.length} runs</p>;
}
