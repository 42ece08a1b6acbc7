import { QueryClient } from "@tanstack/react-query";
import { afterEach, expect, it, vi } from "vitest";
import { buildAddress } from "@/api/client";
import { makeRouter } from "@/app/router";
import { writeSubmitCommand } from "@/lib/commands";
import { readRememberedProject, rememberProject } from "@/lib/lastProject";
import { getPublicPath, getServerAddress } from "@/lib/publicPath";
import { makeStream } from "@/live/useLive";

function writePath(content: string): void {
  const meta = document.createElement("meta");
  meta.name = "palestra-path";
  meta.content = content;
  document.head.append(meta);
}

afterEach(() => document.querySelector('meta[name="palestra-path"]')?.remove());

it("is empty without a server that writes it, and where the server is at the root", () => {
  expect(getPublicPath()).toBe("");
  writePath("./");
  expect(getPublicPath()).toBe("");
  document.querySelector('meta[name="palestra-path"]')?.setAttribute("content", "/");
  expect(getPublicPath()).toBe("");
  expect(buildAddress("/runs")).toBe("/api/v1/runs");
});

it("is that of requests, commands and links", () => {
  writePath("/palestra/");
  expect(buildAddress("/runs", { limit: 2 })).toBe("/palestra/api/v1/runs?limit=2");
  expect(getServerAddress()).toBe(`${window.location.origin}/palestra`);
  expect(writeSubmitCommand("0")).toMatch(/\/palestra$/);
  const router = makeRouter(new QueryClient());
  const address = router.buildLocation({ to: "/p/$project/runs", params: { project: "lab" } });
  expect(address.publicHref).toBe("/palestra/p/lab/runs");
});

it("is that of the live stream", async () => {
  writePath("/palestra/");
  const sent = vi.fn((_path: string) => new Promise<Response>(() => undefined));
  vi.stubGlobal("fetch", sent);
  const scope = makeStream().open({
    project: null,
    filter: { runs: [], experiments: [], types: [] },
    after: null,
    onEvents: () => undefined,
    onResync: () => undefined,
  });
  await vi.waitFor(() => expect(sent.mock.calls[0]?.[0]).toBe("/palestra/api/v1/events:stream"));
  scope.close();
});

it("keeps what servers of one host store in the browser apart", () => {
  rememberProject("lab");
  writePath("/palestra/");
  expect(readRememberedProject()).toBeNull();
  rememberProject("atari");
  document.querySelector('meta[name="palestra-path"]')?.remove();
  expect(readRememberedProject()).toBe("lab");
});
