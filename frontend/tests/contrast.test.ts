import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { chooseGroupColor, chooseMemberColor, type Scheme } from "@/lib/color";

const css = readFileSync("src/ui/tokens.css", "utf8");

function tokens(scheme: Scheme): Map<string, string> {
  const block = css.split(`data-mantine-color-scheme="${scheme}"]`)[1]?.split("}")[0] ?? "";
  return new Map(
    [...block.matchAll(/--([a-z0-9-]+): (#[0-9a-f]{6})/g)].map(([, name, color]) => [
      name as string,
      color as string,
    ]),
  );
}

function luminance(color: string): number {
  const [r, g, b] = [1, 3, 5].map((i) => {
    const c = Number.parseInt(color.slice(i, i + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * (r ?? 0) + 0.7152 * (g ?? 0) + 0.0722 * (b ?? 0);
}

function contrast(a: string, b: string): number {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return ((high ?? 0) + 0.05) / ((low ?? 0) + 0.05);
}

describe.each(["light", "dark"] as const)("WCAG AA in %s", (scheme) => {
  const of = (name: string) => tokens(scheme).get(name) ?? "missing";

  it.each(["ink", "ink-2", "ink-3", "accent", "good", "bad", "warn"])(
    "text in %s is readable on every surface",
    (text) => {
      for (const surface of ["paper", "surface", "surface-2"])
        expect(contrast(of(text), of(surface)), surface).toBeGreaterThanOrEqual(4.5);
    },
  );

  it.each(["accent", "good", "bad", "warn"])("text in %s is readable on its own tint", (tone) => {
    expect(contrast(of(tone), of(`${tone}-soft`))).toBeGreaterThanOrEqual(4.5);
  });

  it("the edge of a control stands out", () => {
    expect(contrast(of("control-line"), of("surface"))).toBeGreaterThanOrEqual(3);
  });

  it("curves stand out from the surface", () => {
    const groups = Array.from({ length: 64 }, (_, i) => `group-${i}`);
    const colors = groups.flatMap((group) => [
      chooseGroupColor(group, scheme),
      ...[0, 1, 2].map((i) => chooseMemberColor(group, i, 3, scheme)),
    ]);
    for (const color of colors)
      expect(contrast(color, of("surface")), color).toBeGreaterThanOrEqual(3);
  });
});
