import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { Plugin } from "vite";

const COMPRESSIBLE = /\.(css|js|json|map|svg|txt|webmanifest)$/;
const LEAST_BYTES = 1_024;

/**
 * Writes a `.br` and a `.gz` copy of every compressible file at each build, so that the server does
 * not compress. `index.html` has none, since the server writes its path into it.
 */
export function compressedCopies(): Plugin {
  let directory = "";
  return {
    name: "compressed-copies",
    apply: "build",
    configResolved(config) {
      directory = config.build.outDir;
    },
    closeBundle() {
      writeCopies(directory);
    },
  };
}

/** Returns the files that got copies. */
export function writeCopies(directory: string): string[] {
  const names = readdirSync(directory, { recursive: true, encoding: "utf-8" });
  const files = names
    .map((name) => join(directory, name))
    .filter((file) => COMPRESSIBLE.test(file));
  const large = files.filter(
    (file) => statSync(file).isFile() && statSync(file).size >= LEAST_BYTES,
  );
  for (const file of large) {
    const content = readFileSync(file);
    const hint = { [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
    writeFileSync(`${file}.br`, brotliCompressSync(content, { params: hint }));
    writeFileSync(`${file}.gz`, gzipSync(content, { level: 9 }));
  }
  return large;
}
