/** Sections of series: their order, and the order of the names in each. */
import { describe, expect, it } from "vitest";
import { matcher, sections } from "@/lib/seriesSections";

describe("sections of series", () => {
  it("come by meaning, the names by rank and then by their numbers", () => {
    const names = ["system/gpu", "layer/10", "layer/2", "evaluation/stdev", "evaluation/mean"];
    expect(sections([...names, "evaluation/length_mean", "plain"], undefined)).toEqual([
      {
        prefix: "evaluation",
        names: ["evaluation/mean", "evaluation/stdev", "evaluation/length_mean"],
      },
      { prefix: "layer", names: ["layer/2", "layer/10"] },
      { prefix: "other", names: ["plain"] },
      { prefix: "system", names: ["system/gpu"] },
    ]);
  });

  it("hold what a regular expression finds, or else a part of the name", () => {
    expect(matcher("^loss/\\d$")("loss/7")).toBe(true);
    expect(matcher("^loss/\\d$")("loss/77")).toBe(false);
    expect(matcher("a(b")("x/a(bc")).toBe(true);
  });
});
