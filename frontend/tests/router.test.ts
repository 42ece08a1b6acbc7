import { readFileSync } from "node:fs";
import { QueryClient } from "@tanstack/react-query";
import { describe, expect, it } from "vitest";
import { makeRouter } from "@/app/router";

describe("pages", () => {
  // Line 15.24: the server answered 200 with the dashboard for every path, since it did not know
  // the pages.
  it("are those for which the server serves the dashboard", () => {
    const listed = JSON.parse(readFileSync("../app/api/dashboard_pages.json", "utf8")) as string[];
    const routed = Object.keys(makeRouter(new QueryClient()).routesByPath);
    expect([...new Set(routed)].sort()).toEqual([...listed].sort());
  });
});
