import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";
import { mockServer } from "./dev/mock/plugin.ts";
import { compressedCopies } from "./scripts/compress.ts";

const SERVER = process.env.PALESTRA_SERVER ?? "http://127.0.0.1:8080";

export default defineConfig(({ mode }) => ({
  // The path below which the server is published is known when it starts.
  base: "./",
  plugins: [react(), compressedCopies(), ...(mode === "mock" ? [mockServer()] : [])],
  resolve: {
    alias: {
      "@": fileURLToPath(new URL("./src", import.meta.url)),
      "tabler-icons": "@tabler/icons-react/dist/esm/icons",
    },
  },
  server: mode === "mock" ? {} : { proxy: { "/api": SERVER } },
  build: {
    target: "es2022",
    // A data URL would need `data:` in the content security policy.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 700,
  },
  test: {
    environment: "jsdom",
    setupFiles: ["tests/setup.ts"],
    include: ["tests/**/*.test.{ts,tsx}"],
    css: false,
    // All files of a worker share its modules and its DOM, which cost more than most tests;
    // tests/setup.ts resets both after each test.
    isolate: false,
    // By default one core is left to the process that transforms, which has little to do.
    maxWorkers: "100%",
    restoreMocks: true,
    unstubGlobals: true,
    // The patience of a busy machine; a test that passes does not wait for it.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
}));
