import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { App } from "@/app/App";

const asked: string[] = [];
const FAULT = "at character 1: is no field of this list; did you mean agent?";

function answer(url: string): Response {
  if (url.includes("/session")) {
    const lab = { project_id: "prj_1", slug: "lab", name: "Lab", role: "member", archived: false };
    const body = {
      user: "eva",
      projects: [{ ...lab, permissions: ["run.read"] }],
      permissions: [],
      csrf_token: "x",
      scopes: [],
    };
    return new Response(JSON.stringify(body), { status: 200 });
  }
  const filter = new URL(url, "http://localhost").searchParams.get("filter");
  if (filter?.startsWith("agnt"))
    return new Response(
      JSON.stringify({
        code: "unknown_filter_field",
        detail: `query/filter: ${FAULT}`,
        position: 0,
        errors: [{ pointer: "query/filter", code: "unknown_filter_field", message: FAULT }],
      }),
      { status: 422 },
    );
  return new Response(JSON.stringify({ items: [], next_cursor: null }), { status: 200 });
}

beforeEach(() => {
  asked.length = 0;
  vi.stubGlobal("fetch", (url: string) => {
    if (url.includes("/experiments?")) asked.push(url);
    return Promise.resolve(answer(url));
  });
  window.history.replaceState(null, "", "/p/lab/experiments");
  render(<App />);
});

describe("the filter of the experiments", () => {
  it("is part of the address and is sent to the server", async () => {
    await userEvent.type(await screen.findByLabelText("Filter"), "agent:ppo created:<7d");
    await waitFor(() => expect(asked.at(-1)).toContain("filter=agent%3Appo+created%3A%3C7d"));
    expect(new URLSearchParams(window.location.search).get("filter")).toBe("agent:ppo created:<7d");
    await screen.findByText("No experiment matches");
  });

  it("shows where it cannot be read, until it is corrected", async () => {
    const field = await screen.findByLabelText("Filter");
    await userEvent.type(field, "agnt:ppo");
    await screen.findByText(FAULT);
    await screen.findByText("The filter cannot be read");
    expect(field).toBeInvalid();
    await userEvent.clear(field);
    await userEvent.type(field, "agent:ppo");
    await waitFor(() => expect(screen.queryByText(FAULT)).toBeNull());
    expect(field).not.toBeInvalid();
  });
});
