/** Short names of experiments, and of those in the names and sentences of statistics. */
import { splitExperimentId } from "./format";

/** IDs without their hashes; with it where two experiments would have the same name. */
export function shortenExperimentIds(ids: readonly string[]): Map<string, string> {
  const slugs = ids.map((id) => splitExperimentId(id).slug);
  const counts = new Map<string, number>();
  for (const slug of slugs) counts.set(slug, (counts.get(slug) ?? 0) + 1);
  return new Map(
    ids.map((id, at) => {
      const slug = slugs[at] ?? id;
      return [id, counts.get(slug) === 1 ? slug : id];
    }),
  );
}

/** Sentences of the server name a group by its field and value. */
export function nameExperiments(sentence: string, names: ReadonlyMap<string, string>): string {
  return sentence.replace(/\bexperiment=([\w-]+)/g, (_, id: string) => names.get(id) ?? id);
}
