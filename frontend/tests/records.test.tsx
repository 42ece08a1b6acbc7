/** Downloads of points, episodes, evaluations and epochs on the pages of runs and experiments. */
import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it } from "vitest";
import { recordExport } from "@/api/recordExport";
import { RunActions } from "@/features/run/RunActions";
import { RecordsMenu } from "@/ui/RecordsMenu";
import { mockServer, run, show } from "./runFixtures";

beforeEach(mockServer);

describe("Records of a run", () => {
  it("are downloaded from the run's page as files of each kind and format", async () => {
    show(<RunActions run={run({ state: "succeeded" })} />);
    await userEvent.click(screen.getByRole("button", { name: "Download records" }));
    const link = await screen.findByRole("menuitem", { name: "Evaluations as Parquet" });
    expect(link).toHaveAttribute(
      "href",
      "/api/v1/records:export?run=run_1&kind=evaluations&format=parquet",
    );
    expect(screen.getByRole("menuitem", { name: "Epochs as CSV" })).toHaveAttribute(
      "href",
      "/api/v1/records:export?run=run_1&kind=epochs&format=csv",
    );
    expect(screen.getAllByRole("menuitem")).toHaveLength(12);
  });

  it("of an experiment are those of its project", async () => {
    show(<RecordsMenu buildUrl={recordExport("lab", { experiment: "ppo-1" })} />);
    await userEvent.click(screen.getByRole("button", { name: "Download records" }));
    const link = await screen.findByRole("menuitem", { name: "All points of all curves as CSV" });
    expect(link).toHaveAttribute(
      "href",
      "/api/v1/records:export?experiment=ppo-1&project=lab&kind=points&format=csv",
    );
  });
});
