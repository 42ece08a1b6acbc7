import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { writeCopies } from "../scripts/compress.ts";

test("line 15.27: compressible files have compressed copies of the same content", () => {
  const directory = mkdtempSync(join(tmpdir(), "copies-"));
  mkdirSync(join(directory, "assets"));
  const script = "export const a = 1;\n".repeat(500);
  writeFileSync(join(directory, "assets", "index-x.js"), script);
  writeFileSync(join(directory, "assets", "font.woff2"), script);
  writeFileSync(join(directory, "small.svg"), "<svg/>");
  expect(writeCopies(directory)).toHaveLength(1);
  const names = readdirSync(join(directory, "assets")).sort();
  expect(names).toEqual(["font.woff2", "index-x.js", "index-x.js.br", "index-x.js.gz"]);
  const read = (name: string) => readFileSync(join(directory, "assets", name));
  expect(brotliDecompressSync(read("index-x.js.br")).toString()).toBe(script);
  expect(gunzipSync(read("index-x.js.gz")).toString()).toBe(script);
});
