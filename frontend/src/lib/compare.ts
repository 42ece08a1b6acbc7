/** Links to the page that compares runs. */

export const FEWEST_COMPARED = 2;
export const MOST_COMPARED = 30;

/** The part of the page's URL that says what is compared. */
export interface ComparedSearch {
  /** IDs of runs, with commas. */
  runs?: string;
  /** IDs of experiments, with commas. */
  experiments?: string;
  /** Fields of the definition whose values make groups, with commas. */
  by?: string;
}

/** The URL's parameters for a comparison of single runs. */
export function compareRuns(runs: readonly string[]): ComparedSearch {
  return { runs: runs.join(",") };
}

/** The URL's parameters for a comparison of experiments, whose runs are one group each. */
export function compareExperiments(experiments: readonly string[]): ComparedSearch {
  return { experiments: experiments.join(","), by: "experiment" };
}

/** Why some things cannot be compared; `null` if they can. */
export function refuseComparison(count: number, what: string): string | null {
  if (count < FEWEST_COMPARED) return `Select at least ${FEWEST_COMPARED} ${what} to compare them.`;
  if (count > MOST_COMPARED) return `At most ${MOST_COMPARED} ${what} can be compared.`;
  return null;
}
