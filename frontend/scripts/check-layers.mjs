// The layers of src: each may import only those to its right; a feature never imports another
// feature. Also the limit on a file's length.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..", "src");
const MAX_LINES = 250;
const ALLOWED = {
  app: ["features", "ui", "charts", "live", "api", "lib"],
  features: ["ui", "charts", "live", "api", "lib"],
  ui: ["lib"],
  charts: ["lib"],
  live: ["api", "lib"],
  api: ["lib"],
  lib: [],
};

function* sources(directory) {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) yield* sources(path);
    else if (/\.tsx?$/.test(entry.name) && !entry.name.endsWith(".d.ts")) yield path;
  }
}

function place(path) {
  const [layer, part] = relative(ROOT, path).split(sep);
  return { layer, unit: layer === "features" ? `features/${part}` : layer };
}

function target(file, specifier) {
  if (specifier.startsWith("@/")) return place(join(ROOT, specifier.slice(2)));
  return specifier.startsWith(".") ? place(resolve(dirname(file), specifier)) : null;
}

const problems = [];
for (const file of sources(ROOT)) {
  const text = readFileSync(file, "utf8");
  const name = relative(ROOT, file);
  const lines = text.split("\n").length - 1;
  if (lines > MAX_LINES) problems.push(`${name}: ${lines} lines, more than ${MAX_LINES}`);
  const from = place(file);
  for (const [, specifier] of text.matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g)) {
    const to = target(file, specifier);
    if (to === null || to.unit === from.unit) continue;
    if (!(ALLOWED[from.layer] ?? []).includes(to.layer))
      problems.push(`${name}: ${from.unit} must not import ${to.unit}`);
  }
}
for (const problem of problems) process.stderr.write(`${problem}\n`);
process.exit(problems.length > 0 ? 1 : 0);
