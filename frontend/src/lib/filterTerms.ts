import { writeThresholdKey } from "@/lib/thresholdKeys";

/** The terms of a filter of the lists, as texts. The server reads what they mean. */

const WORD = /(?:[^\s"]|"(?:[^"\\]|\\.)*"?)+/gs;

/** Splits a filter at the blanks outside of quotes; `not` stays with the term that it negates. */
export function splitTerms(filter: string): string[] {
  const found: string[] = [];
  for (const [word] of filter.matchAll(WORD)) {
    const last = found.length - 1;
    if (found[last]?.toLowerCase() === "not") found[last] += ` ${word}`;
    else found.push(word);
  }
  return found;
}

/** Adds a term to a filter, unless the filter has it. */
export function addTerm(filter: string, term: string): string {
  const terms = splitTerms(filter);
  return terms.includes(term) ? filter : [...terms, term].join(" ");
}

/** Joins filters that must all hold. */
export function joinFilters(...filters: readonly string[]): string {
  return filters.filter((one) => one.trim() !== "").join(" ");
}

interface KeyNames {
  fields: readonly { name: string; kind: string; choices: readonly string[] }[];
  members: readonly string[];
  series: readonly string[];
  thresholds: readonly string[];
}

const MOST = 8;
const OPERATOR = /:~|:?(?:<=|>=|<|>)|:/;
const NUMBERS = new Set(["number", "time"]);

/** Returns whole filters in which the last word is completed. */
export function completeFilter(filter: string, keys: KeyNames): string[] {
  const word = /\S*$/.exec(filter)?.[0] ?? "";
  const before = filter.slice(0, filter.length - word.length);
  const negation = word.startsWith("-") ? "-" : "";
  const typed = word.slice(negation.length);
  const operator = OPERATOR.exec(typed);
  if (operator !== null) {
    const name = typed.slice(0, operator.index);
    const choices = keys.fields.find((one) => one.name === name)?.choices ?? [];
    const value = typed.slice(operator.index + operator[0].length);
    const comma = value.lastIndexOf(",") + 1;
    const head = typed.slice(0, typed.length - value.length) + value.slice(0, comma);
    return choices
      .filter((one) => one.startsWith(value.slice(comma)) && one !== value.slice(comma))
      .slice(0, MOST)
      .map((one) => `${before}${negation}${head}${one}`);
  }
  if (typed === "") return [];
  const names = [
    ...keys.fields.map((one) => ({ name: one.name, sign: NUMBERS.has(one.kind) ? ">" : ":" })),
    ...keys.members.map((name) => ({ name, sign: ":" })),
    ...keys.series.map((name) => ({
      name: name.includes("/") ? name : `series.${name}`,
      sign: ">",
    })),
    ...keys.thresholds.map((name) => ({ name: writeThresholdKey(name), sign: "<" })),
  ];
  const rank = (name: string) => (name.startsWith(typed) ? 0 : 1);
  return names
    .filter(({ name }) => name.toLowerCase().includes(typed.toLowerCase()))
    .sort((a, b) => rank(a.name) - rank(b.name))
    .slice(0, MOST)
    .map(({ name, sign }) => `${before}${negation}${name}${sign}`);
}
