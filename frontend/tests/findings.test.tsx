import { fireEvent, render, screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { FindingsPanel } from "@/features/run/FindingsPanel";
import type { Finding } from "@/lib/findings";
import { HealthMark } from "@/ui/HealthMark";

const finding = (changes: Partial<Finding>): Finding => ({
  rule: "values_above_rewards",
  sentence: "q/mean is 800, but rewards of at most 1 allow 100.",
  remedy: "Lower the learning rate.",
  series: "q/mean",
  env_step: 90_000,
  ...changes,
});
const FELL = finding({
  rule: "return_fell",
  sentence: "The return fell from 200 to 9.",
  series: "evaluation/mean",
});
const NO_EPISODE = finding({
  rule: "no_episode_finished",
  sentence: "No episode finished in 20000 env_steps.",
  series: "",
});

it("marks a run with its number of findings, and names them", () => {
  render(<HealthMark findings={[finding({}), FELL]} />);
  expect(screen.getByText("2 findings")).toBeTruthy();
  expect(screen.getByTitle(/rewards of at most 1 allow 100\.\s+The return fell/)).toBeTruthy();
});

it("marks no healthy run, nor one of a server that does not judge", () => {
  const { container } = render(
    <>
      <HealthMark findings={[]} />
      <HealthMark findings={undefined} />
      <FindingsPanel findings={[]} onShow={() => undefined} />
      <FindingsPanel findings={undefined} onShow={() => undefined} />
    </>,
  );
  expect(container.textContent).toBe("");
});

it("says sentence and remedy, and leads to the curve that shows it", () => {
  const change = vi.fn();
  render(<FindingsPanel findings={[finding({}), FELL, NO_EPISODE]} onShow={change} />);
  expect(screen.getByText("3 findings about this training")).toBeTruthy();
  expect(screen.getByText(NO_EPISODE.sentence)).toBeTruthy();
  const [values, fell, ...others] = screen.getAllByRole("button");
  expect(others).toEqual([]);
  fireEvent.click(values as HTMLElement);
  expect(change).toHaveBeenLastCalledWith({ tab: undefined, q: undefined, focus: "q/mean" });
  fireEvent.click(fell as HTMLElement);
  expect(change).toHaveBeenLastCalledWith({ tab: "evaluations" });
});
