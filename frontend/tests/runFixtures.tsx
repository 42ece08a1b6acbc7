/** A run with its job and attempt, and a mock of the server for tests of its components. */
import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render } from "@testing-library/react";
import type { ReactNode } from "react";
import { vi } from "vitest";
import type { Attempt, Job, RunDetail } from "@/api/types";

export const FAILURE = {
  message: "The environment raised: KeyError.",
  exception: "KeyError",
  traceback: "File env.py, line 3",
};

export const attempt = (changes: Partial<Attempt>): Attempt =>
  ({
    id: "att_1",
    job_id: "job_1",
    number: 1,
    ended_at: null,
    cause: null,
    failure: null,
    ...changes,
  }) as Attempt;
export const job = (changes: Partial<Job>): Job =>
  ({
    id: "job_1",
    schedule: "train",
    state: "failed",
    run_ids: ["run_1"],
    seeds: [0],
    cause: null,
    failure: null,
    not_uploaded: null,
    ...changes,
  }) as Job;
export const run = (changes: Partial<RunDetail>): RunDetail =>
  ({
    id: "run_1",
    seed: 0,
    state: "failed",
    cause: "user_exception",
    failure: FAILURE,
    job_id: "job_1",
    jobs: [job({})],
    attempts: [],
    definition: { kind: "rl", loop: { env_steps: 100 } },
    ...changes,
  }) as unknown as RunDetail;

/** Bodies of the POST requests since `mockServer`. */
export const sent: { url: string; body: unknown }[] = [];
/** Answers by path; other paths answer with an empty page. */
export const answers = new Map<string, { status: number; body: unknown }>();

export function show(element: ReactNode): void {
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient()}>{element}</QueryClientProvider>
    </MantineProvider>,
  );
}

export function mockServer(): void {
  sent.length = 0;
  answers.clear();
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    const address = url.replace("/api/v1", "");
    const path = address.split("?")[0] ?? "";
    if (init.method === "POST" || init.method === "PATCH")
      sent.push({ url: address, body: init.body ? JSON.parse(String(init.body)) : null });
    const { status, body } = answers.get(path) ?? {
      status: 200,
      body: { items: [], next_cursor: null },
    };
    return Promise.resolve(new Response(JSON.stringify(body), { status }));
  });
}
