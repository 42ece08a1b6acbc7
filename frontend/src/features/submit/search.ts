/** Search parameters of the page, which say with what the form begins. */
import { type Search, text, tidy } from "@/lib/search";

export interface NewExperimentSearch {
  /** Name of a preset. */
  preset?: string;
  /** ID of an experiment of the project, which is cloned. */
  from?: string;
}

export function readNewExperimentSearch(search: Search): NewExperimentSearch {
  return tidy({ preset: text(search, "preset"), from: text(search, "from") });
}
