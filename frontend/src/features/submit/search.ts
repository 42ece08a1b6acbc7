/** Search parameters of the page, which say with what the form begins. */
import { type Search, text, tidy } from "@/lib/search";

export interface NewExperimentSearch {
  /** Name of a preset. */
  preset?: string;
  /** ID of an experiment of the project, which is cloned. */
  from?: string;
  /** ID of an experiment of the project whose environment the clone gets. */
  env?: string;
  /** Seeds of the clone, with commas. */
  seeds?: string;
}

export function readNewExperimentSearch(search: Search): NewExperimentSearch {
  return tidy({
    preset: text(search, "preset"),
    from: text(search, "from"),
    env: text(search, "env"),
    seeds: text(search, "seeds"),
  });
}

/** The seeds that the search parameter names; `null` if it names none. */
export function readSeeds(seeds: string | undefined): number[] | null {
  const found = (seeds ?? "")
    .split(",")
    .filter((one) => /^\d{1,15}$/.test(one.trim()))
    .map(Number);
  return found.length > 0 ? [...new Set(found)] : null;
}
