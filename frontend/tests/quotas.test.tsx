import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it } from "vitest";
import { QuotaDialog } from "@/features/pools/QuotaDialog";
import { answers, mockServer, sent, show } from "./runFixtures";

beforeEach(mockServer);

const none = { queued: null, running: null, device_hours: null };
const used = { queued: 3, running: 2, device_hours: 1.25 };
const person = (user: string, changes: object = {}) => ({
  user,
  has_own_limits: false,
  limits: { ...none, running: 4 },
  used,
  left: { ...none, running: 2 },
  ...changes,
});
const PATH = "/pools/gpu/projects/lab/quotas";

function showQuotas() {
  answers.set(PATH, {
    status: 200,
    body: {
      pool: "gpu",
      project: "lab",
      period_seconds: 604_800,
      of_project: { limits: { ...none, queued: 50 }, used, left: { ...none, queued: 47 } },
      each_person: { ...none, running: 4 },
      persons: [person("ada"), person("bob", { has_own_limits: true })],
    },
  });
  show(<QuotaDialog pool="gpu" project="lab" onClose={() => undefined} />);
}

async function choose(name: RegExp) {
  await userEvent.click(await screen.findByRole("combobox", { name: "Limits of", hidden: true }));
  await userEvent.click(await screen.findByRole("option", { name, hidden: true }));
}

describe("The quotas of a project in a pool", () => {
  it("are shown with what is used, and changed", async () => {
    showQuotas();
    const queued = await screen.findByLabelText("Waiting jobs");
    expect(queued).toHaveValue("50");
    expect(screen.getByText(/Once they are used, jobs wait.*Now 1.3/)).toBeVisible();
    await userEvent.clear(queued);
    await userEvent.type(screen.getByLabelText("Device-hours in 7 days"), "12,5");
    await userEvent.click(screen.getByRole("button", { name: "Save", hidden: true }));
    await waitFor(() =>
      expect(sent.at(-1)?.body).toEqual({
        project: { queued: null, running: null, device_hours: 12.5 },
      }),
    );
  });

  it("are those of each person for a person until that one has others", async () => {
    showQuotas();
    await choose(/^ada$/);
    expect(screen.getByLabelText("Running jobs")).toBeDisabled();
    await userEvent.click(screen.getByLabelText("The same as each person"));
    await userEvent.clear(screen.getByLabelText("Running jobs"));
    await userEvent.type(screen.getByLabelText("Running jobs"), "9");
    await userEvent.click(screen.getByRole("button", { name: "Save", hidden: true }));
    await waitFor(() =>
      expect(sent.at(-1)?.body).toEqual({ persons: { ada: { ...none, running: 9 } } }),
    );
  });

  it("of a person end", async () => {
    showQuotas();
    await choose(/bob/);
    await userEvent.click(screen.getByLabelText("The same as each person"));
    await userEvent.click(screen.getByRole("button", { name: "Save", hidden: true }));
    await waitFor(() => expect(sent.at(-1)?.body).toEqual({ persons: { bob: null } }));
  });

  it("are numbers", async () => {
    showQuotas();
    await userEvent.type(await screen.findByLabelText("Running jobs"), "2.5");
    expect(screen.getByText("Write a number, or nothing.")).toBeVisible();
    expect(screen.getByRole("button", { name: "Save", hidden: true })).toBeDisabled();
  });
});
